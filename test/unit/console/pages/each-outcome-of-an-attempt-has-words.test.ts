/** The pages show in words how an attempt at a model's server ended, and why, in each language. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { fileURLToPath } from "node:url";

const source = (path: string) => fileURLToPath(new URL(`../../../../src/${path}`, import.meta.url));

/** Each word in a source file that a pattern finds. */
function found(path: string, pattern: RegExp): readonly string[] {
  return [...readFileSync(source(path), "utf8").matchAll(pattern)].map(([, word = ""]) => word);
}

/** The path is computed, because the pages are checked with a configuration of their own. */
async function wordsOf(language: string): Promise<Readonly<Record<string, string>>> {
  const path = source(`console/pages/texts/${language}/attempts.ts`);
  return ((await import(path)) as { readonly attempts: Readonly<Record<string, string>> }).attempts;
}

test("the words cover the causes of failed attempts and the reasons in the ledger, in both languages", async () => {
  const named = [
    ...found("dispatch/failure.ts", /\brow\("([a-z_]+)"/g),
    ...found("settle/meter.ts", /\bwhy: "([a-z_]+)"/g),
    ...["ok", "answered", "complete", "client_gone"],
  ];
  assert.ok(named.length > 20, named.join(" "));
  const [en, zh] = await Promise.all([wordsOf("en"), wordsOf("zh")]);
  for (const word of new Set(named)) assert.ok(en[word], word);
  assert.deepEqual(Object.keys(zh), Object.keys(en));
});
