/** The overview names the causes of refused requests in short words, in each language. */
import assert from "node:assert/strict";
import test from "node:test";
import { ERROR_ROWS } from "../../../../src/values/errors.ts";

/** The path is computed, because the pages are checked with a configuration of their own. */
async function wordsOf(language: string): Promise<Readonly<Record<string, string>>> {
  const path = new URL(`../../../../src/console/pages/texts/${language}/request-causes.ts`, import.meta.url).href;
  return ((await import(path)) as { readonly requestCauses: Readonly<Record<string, string>> }).requestCauses;
}

test("each cause has words of its own, none is a code, and both languages have them in the order of the errors", async () => {
  for (const language of ["en", "zh"]) {
    const words = await wordsOf(language);
    assert.deepEqual(Object.keys(words), Object.keys(ERROR_ROWS), language);
    assert.equal(new Set(Object.values(words)).size, Object.keys(words).length, language);
    for (const text of Object.values(words)) assert.doesNotMatch(text, /_/);
  }
});
