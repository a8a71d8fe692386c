/**
 * docs/failure-model.md row B12: which marks belong to the history that a gateway knows. A line of the table has what the
 * gateway knows, what the store shows, and the verdict.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { openStoreEpoch } from "../../../src/settle/recovery/epoch.ts";
import { type EpochFile, epochFile } from "../../../src/settle/recovery/epoch-file.ts";
import { judgeEpoch, type KnownEpoch, LOSS_ALLOWED_S, pastOf } from "../../../src/settle/recovery/epoch-verdict.ts";
import type { EpochMark, Epochs } from "../../../src/store/epoch.ts";
import { ManualClock } from "./rig.ts";

const known = (id: string, count: number, past: string[] = []): KnownEpoch => ({ id, count, base: 0, past });
const mark = (id: string, count: number, past: string[] = [], stopped = false): EpochMark => ({
  id,
  count,
  past,
  stopped,
});

const TABLE: readonly [string, KnownEpoch | undefined, EpochMark | undefined, string][] = [
  ["nothing is known, so the mark is accepted", undefined, mark("a", 7), "good"],
  ["the same history with more seconds", known("a", 7), mark("a", 8), "good"],
  ["the same history, shorter by the allowed loss", known("a", 100), mark("a", 100 - LOSS_ALLOWED_S), "good"],
  [
    "the same history, shorter by one second more than the allowed loss",
    known("a", 100),
    mark("a", 99 - LOSS_ALLOWED_S),
    "older",
  ],
  ["the store has no mark", known("a", 2), undefined, "empty"],
  ["an unknown history with more seconds", known("a", 2), mark("b", 900), "another"],
  ["a loss was confirmed at another gateway", known("a", 900), mark("b", 1, ["a"]), "good"],
  ["losses were confirmed twice since", known("a", 900), mark("c", 1, ["b", "a"]), "good"],
  ["the mark is from before a confirmation", known("b", 5, ["a"]), mark("a", 900), "older"],
  ["another gateway has found a loss", known("a", 7), mark("a", 8, [], true), "told"],
  ["another gateway has found a loss, and this one knows nothing", undefined, mark("a", 8, [], true), "told"],
  ["another gateway has found a loss, and this one finds it too", known("a", 900), mark("a", 8, [], true), "older"],
];

for (const [sentence, before, found, expected] of TABLE) {
  test(`${sentence}: ${expected}`, () => {
    const verdict = judgeEpoch(before, found);
    assert.equal("loss" in verdict ? verdict.loss : "good", expected);
  });
}

test("a history that continues two others names both, and at most sixteen ids", () => {
  const long = Array.from({ length: 16 }, (_, n) => `old-${n}`);
  const past = pastOf({ part: 0, kind: "another", known: known("a", 1, ["z"]), found: mark("b", 1, long) });
  assert.deepEqual(past.slice(0, 4), ["a", "z", "b", "old-0"]);
  assert.equal(past.length, 16);
});

test("the known history outlives the process, and an unreadable file is reported rather than ignored", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-epoch-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const file = epochFile(dir);
  assert.deepEqual(await file.load(), new Map());
  const parts = new Map([[0, known("a", 7, ["z"])]]);
  await file.save(parts);
  assert.deepEqual(await epochFile(dir).load(), parts);
  const counted = new Map([[0, { ...known("a", 7, ["z"]), base: 5, times: 2 }]]);
  await file.save(counted);
  assert.deepEqual(await epochFile(dir).load(), counted);
  writeFileSync(join(dir, "store-epoch.json"), '{"parts":[[0,{"id":"a"}]]}');
  await assert.rejects(file.load(), /store-epoch\.json cannot be read, .* then remove the file/);
});

/** A gateway's view of a store of one part that shows the marks of the test. @param file what the gateway knew before. */
async function watching(file: ReadonlyMap<number, KnownEpoch>) {
  const [saved, stops, least]: [KnownEpoch[], string[], number[]] = [[], [], []];
  const clock = new ManualClock();
  let told = 0;
  const log = { warn() {}, error: () => void told++ } as never;
  const shown = { mark: mark("a", 1) };
  const store: Epochs = {
    epochParts: 1,
    epochPartOf: () => 0,
    countEpoch: async (_part, ours) => {
      if (ours) least.push(ours.countMin);
      return shown.mark;
    },
    stopEpoch: async (_part, id) => void stops.push(id),
    renewEpoch: async () => assert.fail("the operator does not confirm"),
  };
  const kept: EpochFile = {
    load: async () => file,
    save: async (now) => void saved.push(now.get(0) ?? assert.fail()),
  };
  const epoch = await openStoreEpoch({
    ...{ store, file: kept, clock, log, onChange() {} },
    random: (bytes) => Buffer.alloc(bytes),
  });
  /** One look. @returns the life of the history that it finds. */
  const look = async (count: number) => {
    shown.mark = mark("a", count);
    await epoch.check();
    return epoch.life();
  };
  /** The losses that a look finds with this mark. */
  const verdictOn = async (found: EpochMark) => {
    shown.mark = found;
    await epoch.check().catch(() => undefined);
    return epoch.losses().map(({ kind }) => kind);
  };
  return { look, saved, verdictOn, stops, least, clock, told: () => told, stop: () => epoch.stop() };
}

test("the gateways of a history that lost seconds are stopped once, and those of an unknown history are not", async () => {
  const { look, verdictOn, stops } = await watching(new Map());
  await look(900);
  assert.deepEqual(await verdictOn(mark("b", 900)), ["another"]);
  assert.deepEqual(stops, []);
  assert.deepEqual(await verdictOn(mark("a", 1)), ["older"]);
  assert.deepEqual(stops, ["a"]);
  assert.deepEqual(await verdictOn(mark("a", 2, [], true)), ["older"]);
  assert.deepEqual(stops, ["a"], "the epoch is stopped already");
});

test("a loss is logged once a minute as long as it lasts", async () => {
  const { look, verdictOn, clock, told } = await watching(new Map());
  await look(900);
  for (const [passesMs, times] of [
    [0, 1],
    [1_000, 1],
    [58_999, 1],
    [1, 2],
    [59_999, 2],
    [1, 3],
  ] as const) {
    await clock.advance(passesMs);
    await verdictOn(mark("b", 900));
    assert.equal(told(), times);
  }
});

test("a gateway that ends saves the newest count, and the minimum that it demands is lower by the allowed loss", async () => {
  const { look, saved, least, stop } = await watching(new Map());
  for (const count of [100, 104]) await look(count);
  assert.deepEqual(saved, [known("a", 100)]);
  await stop();
  assert.deepEqual(saved, [known("a", 100), known("a", 104)]);
  assert.deepEqual(least, [100 - LOSS_ALLOWED_S]);
});

test("a history that went back is saved by the look that finds it, even if it lost only a few seconds", async () => {
  const { look, saved } = await watching(new Map());
  for (const count of [100, 104]) await look(count);
  assert.deepEqual(saved, [known("a", 100)]);
  await look(95);
  assert.deepEqual(saved.slice(1), [{ ...known("a", 95), base: 95, times: 1 }]);
});

test("each return to an earlier count starts a new life, also a repeated one, and a look without a return does not", async () => {
  const { look, saved } = await watching(new Map());
  const lives = [await look(9)];
  for (let time = 1; time <= 3; time++) {
    lives.push(await look(5));
    for (const count of [5, 7, 9]) assert.equal(await look(count), lives.at(-1));
  }
  assert.equal(new Set(lives).size, 4);
  assert.deepEqual(
    saved.slice(1).map(({ base, times }) => [base, times]),
    [1, 2, 3].map((times) => [5, times]),
  );
});

test("a return to zero, where an emptied store starts after the operator's confirmation, starts a new life", async () => {
  const { look } = await watching(new Map());
  const lives = [await look(0), await look(2), await look(0), await look(2), await look(0)];
  assert.equal(new Set(lives).size, 3);
});

test("a restart starts no new life, and a file without a count of returns stands for one return", async () => {
  const before = new Map([[0, { ...known("a", 9), base: 5 }]]);
  const { look } = await watching(before);
  const first = await look(9);
  const second = await look(5);
  assert.notEqual(second, first);
  const again = await watching(new Map([[0, { ...known("a", 9), base: 5, times: 2 }]]));
  assert.equal(await again.look(9), second);
  const older = await watching(new Map([[0, { ...known("a", 9), base: 5, times: 1 }]]));
  assert.equal(await older.look(9), first);
});
