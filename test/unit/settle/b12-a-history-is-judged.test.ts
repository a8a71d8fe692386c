/**
 * docs/failure-model.md row B12: which marks belong to the history that a gateway knows; one line is what it knows,
 * what is there, the verdict.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { epochFile, judgeEpoch, type KnownEpoch, LOSS_ALLOWED_S, pastOf } from "../../../src/settle/recovery/epoch.ts";
import type { EpochMark } from "../../../src/store/epoch.ts";

const known = (id: string, count: number, past: string[] = []): KnownEpoch => ({ id, count, base: 0, past });
const mark = (id: string, count: number, past: string[] = [], stopped = false): EpochMark => ({
  id,
  count,
  past,
  stopped,
});

const TABLE: readonly [string, KnownEpoch | undefined, EpochMark | undefined, string][] = [
  ["nothing known, so it is taken as it is", undefined, mark("a", 7), "good"],
  ["the same, and more of it", known("a", 7), mark("a", 8), "good"],
  ["as little less as is allowed", known("a", 100), mark("a", 100 - LOSS_ALLOWED_S), "good"],
  ["one second too little", known("a", 100), mark("a", 99 - LOSS_ALLOWED_S), "older"],
  ["nothing there", known("a", 2), undefined, "empty"],
  ["a stranger's, with more seconds", known("a", 2), mark("b", 900), "another"],
  ["confirmed at another gateway", known("a", 900), mark("b", 1, ["a"]), "good"],
  ["confirmed twice since", known("a", 900), mark("c", 1, ["b", "a"]), "good"],
  ["from before a confirmation", known("b", 5, ["a"]), mark("a", 900), "older"],
  ["another gateway has found a loss", known("a", 7), mark("a", 8, [], true), "told"],
  ["so it is told, though it knows nothing", undefined, mark("a", 8, [], true), "told"],
  ["its own finding comes first", known("a", 900), mark("a", 8, [], true), "older"],
];

for (const [sentence, before, found, expected] of TABLE) {
  test(`${sentence}: ${expected}`, () => {
    const verdict = judgeEpoch(before, found);
    assert.equal("loss" in verdict ? verdict.loss : "good", expected);
  });
}

test("a history that goes on from two others names both, and no more than sixteen", () => {
  const long = Array.from({ length: 16 }, (_, n) => `old-${n}`);
  const past = pastOf({ part: 0, kind: "another", known: known("a", 1, ["z"]), found: mark("b", 1, long) });
  assert.deepEqual(past.slice(0, 4), ["a", "z", "b", "old-0"]);
  assert.equal(past.length, 16);
});

test("what is remembered outlives the process; a file that says nothing readable is told, not forgotten", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-epoch-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = epochFile(dir);
  assert.deepEqual(await file.load(), new Map());
  const parts = new Map([[0, known("a", 7, ["z"])]]);
  await file.save(parts);
  assert.deepEqual(await epochFile(dir).load(), parts);
  writeFileSync(join(dir, "store-epoch.json"), '{"parts":[[0,{"id":"a"}]]}');
  await assert.rejects(file.load(), /store-epoch\.json cannot be read, .* then remove the file/);
});
