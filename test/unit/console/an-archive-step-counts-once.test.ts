// docs/admin-api.md, the archive: lines are removed once, and none that is younger than 96 hours or of the named day.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { digestOf } from "../../../src/store/ledger/plain-line.ts";
import { systemClock } from "../../../src/values/time.ts";
import { startConsole } from "./running-console.ts";
import { holding, openStoreAt } from "./test-store.ts";

const HOUR_MS = 3_600_000;
const DAY = "2026-08-31";
const MIDNIGHT_MS = Date.parse(DAY);

/** An account with one line at each instant, at a gateway whose time the test sets. */
async function withLines(t: TestContext, ...atMs: number[]) {
  let [nowMs, storeLateMs] = [0, 0];
  /** Runs after each read of the ledger. */
  let onLook = async () => {};
  const store = await openStoreAt(t, () => nowMs - storeLateMs);
  const clock = { ...systemClock, wallMs: () => nowMs };
  const { ask } = await startConsole(t, { store: holding(store, "readLedger", () => onLook()), clock });
  await ask("POST", "/admin/v1/accounts", { name: "alice" });
  for (const [i, at] of atMs.entries()) {
    nowMs = at;
    assert.equal((await ask("POST", "/admin/v1/accounts/alice/topups", { usd: "1.00", id: `pay_${i}` })).status, 201);
  }
  const { tag } = (await store.findAccount("alice")) ?? assert.fail();
  const lines = await store.readLedger(tag, 0, 10);
  /** Archives the first lines, this long after midnight. */
  const archive = async (through: number, afterMs: number) => {
    nowMs = MIDNIGHT_MS + afterMs;
    const sha256 = digestOf(lines.slice(0, through));
    const step = { before: DAY, after: 0, through, sha256 };
    const { status, json } = await ask("POST", "/admin/v1/accounts/alice/ledger/archive", step);
    return [status, json.error?.code ?? json.repeated];
  };
  const kinds = async () => (await store.readLedger(tag, 0, 10)).map(({ kind, seq }) => `${seq} ${kind}`);
  const setBack = (ms: number) => {
    storeLateMs = ms;
  };
  const lookWith = (work: () => Promise<void>) => {
    onLook = work;
  };
  return { archive, kinds, setBack, lookWith };
}

test("a repeated step is answered as repeated, and so is a part of one", async (t) => {
  const { archive, kinds } = await withLines(t, MIDNIGHT_MS - 3, MIDNIGHT_MS - 2, MIDNIGHT_MS - 1);
  assert.deepEqual(await archive(2, 97 * HOUR_MS), [201, false]);
  const left = ["2 opening", "3 topup"];
  assert.deepEqual(await kinds(), left);
  assert.deepEqual(await archive(2, 97 * HOUR_MS), [200, true]);
  assert.deepEqual(await archive(1, 97 * HOUR_MS), [200, true]);
  assert.deepEqual(await archive(3, 97 * HOUR_MS), [409, "moved"]);
  assert.deepEqual(await kinds(), left);
});

test("a day may be named from 96 hours after its beginning on, and its own lines stay", async (t) => {
  const { archive, kinds } = await withLines(t, MIDNIGHT_MS - 1, MIDNIGHT_MS);
  assert.deepEqual(await archive(1, 96 * HOUR_MS - 1), [409, "too_young"]);
  assert.deepEqual(await archive(2, 96 * HOUR_MS), [409, "not_before"]);
  assert.deepEqual(await kinds(), ["1 topup", "2 topup"]);
  assert.deepEqual(await archive(1, 96 * HOUR_MS), [201, false]);
  assert.deepEqual(await kinds(), ["1 opening", "2 topup"]);
});

test("lines that are too young by the store's own clock stay, and the step is refused as too_young", async (t) => {
  const { archive, kinds, setBack } = await withLines(t, MIDNIGHT_MS - 1);
  setBack(2 * HOUR_MS);
  assert.deepEqual(await archive(1, 97 * HOUR_MS), [409, "too_young"]);
  assert.deepEqual(await kinds(), ["1 topup"]);
  assert.deepEqual(await archive(1, 98 * HOUR_MS), [201, false]);
});

test("of two parallel steps of different length, one is refused because the ledger begins elsewhere", async (t) => {
  const { archive, kinds, lookWith } = await withLines(t, MIDNIGHT_MS - 3, MIDNIGHT_MS - 2, MIDNIGHT_MS - 1);
  let looks = 0;
  lookWith(async () => {
    looks += 1;
    // After the last read of a step: it reads where the ledger begins, the lines, and the line after them.
    if (looks === 3) assert.deepEqual(await archive(3, 97 * HOUR_MS), [201, false]);
  });
  assert.deepEqual(await archive(2, 97 * HOUR_MS), [409, "moved"]);
  assert.deepEqual(await kinds(), ["3 opening"]);
});
