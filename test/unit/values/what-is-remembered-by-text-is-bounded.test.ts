/** Texts come from clients, so what is remembered for them has a maximum, and what is remembered for a time ends. */
import assert from "node:assert/strict";
import test from "node:test";
import { byText } from "../../../src/values/collections/by-text.ts";
import { createRecent } from "../../../src/values/collections/recent.ts";

const TEXTS_MAX = 1_000;

test("a function of a text is called once for each of a thousand texts, and again when there were more", () => {
  const made: string[] = [];
  const upper = byText((text) => {
    made.push(text);
    return text.toUpperCase();
  });
  const texts = Array.from({ length: TEXTS_MAX }, (_, at) => `text-${at}`);
  for (let round = 0; round < 2; round++) for (const text of texts) assert.equal(upper(text), text.toUpperCase());
  assert.equal(made.length, TEXTS_MAX);
  upper("one more");
  upper("text-0");
  assert.deepEqual(made.slice(TEXTS_MAX), ["one more", "text-0"]);
});

test("an entry that is set at the clock's beginning expires like any other", () => {
  let nowMs = 0;
  const recent = createRecent<string>({ max: 10, ttlMs: 1_000, clock: { monotonicMs: () => nowMs } });
  recent.set("a", "1");
  nowMs = 999;
  assert.equal(recent.get("a"), "1");
  nowMs = 1_001;
  assert.equal(recent.get("a"), undefined);
});
