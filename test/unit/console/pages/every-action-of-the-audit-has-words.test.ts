/** Each action that the audit can name has words in each language of the pages, and so have facts and causes. */
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

/** Refusals before a write begins, which leave no line. */
const BEFORE = new Set(["admin_token_required", "closing", "framing", "too_many_watchers", "unknown_path"]);
/** Codes that no source has as a whole: `account_${status}`, `unknown_${kind}`, and those that are passed on. */
const BUILT = [
  "account_suspended",
  "unknown_plan",
  "unknown_group",
  "unknown_card",
  "store_older",
  "store_unavailable",
];

test("the causes are the codes of refusals, in both languages", async () => {
  const files = globSync("{*,!(pages)/**/*}.ts", { cwd: root });
  const codes = files.flatMap((file) =>
    [
      ...readFileSync(root + file, "utf8").matchAll(
        /(?:AdminRefusal\(\s*\d+,\s*|(?:tooMany|oidcRefused)\(\s*)"([a-z_]+)"/g,
      ),
    ].map(([, code = ""]) => code),
  );
  const [en, zh] = await Promise.all(["en", "zh"].map(causesOf));
  const lacking = [...codes, ...BUILT].filter((code) => !BEFORE.has(code) && en?.[code] === undefined);
  assert.ok(codes.length > 50, codes.join(" "));
  assert.deepEqual(lacking, []);
  assert.deepEqual(Object.keys(zh ?? {}), Object.keys(en ?? {}));
  const words = [...Object.values(en ?? {}), ...Object.values(zh ?? {})];
  assert.equal(new Set(words).size, words.length);
});

async function causesOf(language: string): Promise<Readonly<Record<string, string>>> {
  const { causes } = (await import(`${root}pages/texts/${language}/operator/causes.ts`)) as {
    readonly causes: Readonly<Record<string, string>>;
  };
  return causes;
}

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
