/** Each action that the audit can name has words in each language of the pages, and so has each fact. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../../../src/console/", import.meta.url));
/** An action as the sources write it; `topup` is the only one without a point. */
const ACTION = /"(topup|(?:account|key|code|code_batch|card|session|passkey|operator|store|ledger|webhook)\.[a-z_]+)"/g;

interface Words {
  readonly deeds: Readonly<Record<string, string>>;
  readonly factNames: Readonly<Record<string, string>>;
}

/** The words of a language. The path is computed, because the pages are checked with a configuration of their own. */
async function wordsOf(language: string): Promise<Words> {
  return (await import(`${root}pages/texts/${language}/operator/deeds.ts`)) as Words;
}

function actions(): readonly string[] {
  const files = globSync("{*,!(pages)/**/*}.ts", { cwd: root });
  const found = files.flatMap((file) =>
    [...readFileSync(root + file, "utf8").matchAll(ACTION)].map(([, name]) => name as string),
  );
  return [...new Set(found)].sort();
}

test("the words are those of the actions, in both languages", async () => {
  const named = actions();
  assert.ok(named.length > 35, named.join(" "));
  const [en, zh] = [await wordsOf("en"), await wordsOf("zh")];
  assert.deepEqual(Object.keys(en.deeds).sort(), named);
  assert.deepEqual(Object.keys(zh.deeds).sort(), named);
  assert.deepEqual(Object.keys(zh.factNames).sort(), Object.keys(en.factNames).sort());
});

test("no two actions have the same words, and none is shown as the API names it", async () => {
  for (const language of ["en", "zh"]) {
    const { deeds } = await wordsOf(language);
    const words = Object.values(deeds);
    assert.equal(new Set(words).size, words.length, language);
    assert.deepEqual(
      words.filter((one) => /[._]/.test(one)),
      [],
    );
  }
});
