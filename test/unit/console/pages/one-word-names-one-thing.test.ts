/** The texts of the pages have one word for one thing. Each row has the word, and others that must not come back. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../../src/console/pages/texts/", import.meta.url));
const WORDS = [
  ["zh", "兑换码", /卡密/],
  // A passkey is used with a fingerprint.
  ["zh", "哈希值", /摘要|指纹(?!、面容)/],
  ["zh", "消费", /花费/],
  ["zh", "下载 CSV", /(?:保存|导出)为? ?CSV/],
  ["en", "Download CSV", /(?:Save|Export)\b.*\bCSV/],
  ["en", "hash", /\bdigests?\b/],
] as const;

for (const [language, word, others] of WORDS) {
  test(`the ${language} texts say ${word}`, () => {
    const files = globSync(`{${language}.ts,${language}/**/*.ts}`, { cwd: root });
    const lines = files.flatMap((file) => readFileSync(root + file, "utf8").split("\n"));
    assert.ok(lines.some((line) => line.includes(word)));
    assert.deepEqual(
      lines.filter((line) => others.test(line)),
      [],
    );
  });
}
