/**
 * Charges that the store refuses are kept for an operator in a file with one JSON object per line, and counted by lines after
 * the next start.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type Answer, letterFor, openDeadLetters } from "../../../src/settle/journal/dead-letters.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { printRequestId } from "../../../src/values/request-id.ts";
import { askOf, ManualClock, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

test("each dead letter is one line, whatever it contains, and the next start counts the same number", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const letters = await openDeadLetters(disk, clock, () => {});
  await letters.add({ reason: "mismatch", ask: askOf(1), detail: "recorded 7" });
  await letters.add({ reason: "defect", ask: askOf(2), detail: "a line\nand another: 日本" });
  const file = disk.bytesOf("dead-letters.jsonl").toString();
  const written = file.split("\n").map((line) => (line === "" ? undefined : JSON.parse(line)));
  assert.deepEqual(
    written.map((letter) => letter && [letter.at, letter.reason, letter.ask.amount, letter.ask.memo, letter.detail]),
    [
      [new Date(clock.wallMs()).toISOString(), "mismatch", "101", askOf(1).memo, "recorded 7"],
      [new Date(clock.wallMs()).toISOString(), "defect", "102", askOf(2).memo, "a line\nand another: 日本"],
      undefined,
    ],
  );
  assert.equal((await openDeadLetters(disk, clock, () => {})).count(), 2);
});

test("a dead letter names request and account in the form that clients, ledgers and commands use", async () => {
  const disk = new SimDisk();
  const letters = await openDeadLetters(disk, new ManualClock(), () => {});
  const ask = askOf(1);
  await letters.add({ reason: "mismatch", ask, detail: undefined });
  const letter = JSON.parse(disk.bytesOf("dead-letters.jsonl").toString());
  assert.deepEqual([letter.request, letter.account_id], [printRequestId(ask.requestId), `acct_${ask.tag}`]);
});

test("a dead letter that could not be written is not counted, and is written when it is added again", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const letters = await openDeadLetters(disk, clock, () => {});
  disk.fault = { at: disk.calls + 1, times: 1, code: "ENOSPC" };
  const letter = { reason: "mismatch", ask: askOf(1), detail: undefined } as const;
  await assert.rejects(letters.add(letter), /ENOSPC/);
  assert.equal(letters.count(), 0);
  await letters.add(letter);
  await letters.add(letter);
  assert.equal(letters.count(), 1);
  assert.equal((await openDeadLetters(disk, clock, () => {})).count(), 1);
});

test("adding a letter that is being written waits for the same write and fails with it", async () => {
  const disk = new SimDisk();
  const letters = await openDeadLetters(disk, new ManualClock(), () => {});
  disk.fault = { at: disk.calls + 1, times: 1, code: "EIO" };
  const letter = { reason: "mismatch", ask: askOf(1), detail: undefined } as const;
  const both = await Promise.allSettled([letters.add(letter), letters.add(letter)]);
  assert.deepEqual(
    both.map(({ status }) => status),
    ["rejected", "rejected"],
  );
  await letters.add(letter);
  assert.equal(letters.count(), 1);
});

test("a partial line, after a full disk or a crash, is not counted, and the next letter starts on a new line", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const letter = (number: number) => ({ reason: "mismatch", ask: askOf(number), detail: undefined }) as const;
  const first = await openDeadLetters(disk, clock, () => {});
  await first.add(letter(1));
  const whole = disk.bytesOf("dead-letters.jsonl");
  await disk.append("dead-letters.jsonl", whole.subarray(0, whole.length / 2));
  const second = await openDeadLetters(disk, clock, () => {});
  assert.equal(second.count(), 1);
  for (const number of [1, 2]) await second.add(letter(number));
  const third = await openDeadLetters(disk, clock, () => {});
  assert.deepEqual([second.count(), third.count()], [2, 2]);
  const lines = disk.bytesOf("dead-letters.jsonl").toString().split("\n");
  assert.equal(JSON.parse(lines[2] as string).ask.requestId, askOf(2).requestId);
});

const ATTEMPT = { upstream: "up-chat", cause: "upstream_invalid", amount: nanoUsd(5_000n), memo: "{}" };
const COST = {
  upstream: "up-chat",
  model: "m",
  requests: 1,
  tokens: { input: 100, cachedInput: 0, cacheWrite: 0, output: 0, reasoning: 0 },
  cost: nanoUsd(5_000n),
  absorbed: nanoUsd(5_000n),
  charged: false,
} as NonNullable<ReturnType<typeof voidOf>["costs"]>[number];

const FILE_BYTES_MAX = 16 * 1024 * 1024;

test("the file has a maximum size, which failed writes do not use up; letters beyond it are logged and counted", async () => {
  const disk = new SimDisk();
  const clock = new ManualClock();
  const told: string[] = [];
  const roomFor: boolean[] = [];
  const letters = await openDeadLetters(disk, clock, ({ ask }, hasRoom) => {
    told.push(ask.requestId);
    roomFor.push(hasRoom);
  });
  const large = (number: number) =>
    ({ reason: "defect", ask: askOf(number), detail: "x".repeat(FILE_BYTES_MAX / 2) }) as const;
  disk.fault = { at: disk.calls + 1, times: 2, code: "EIO" };
  for (let time = 0; time < 2; time++) await assert.rejects(letters.add(large(1)), /EIO/);
  await letters.add(large(2));
  const { length } = disk.bytesOf("dead-letters.jsonl");
  assert.ok(length > FILE_BYTES_MAX / 2);
  await letters.add(large(3));
  assert.equal(disk.bytesOf("dead-letters.jsonl").length, length);
  assert.deepEqual([told.slice(-2), letters.count()], [[askOf(2).requestId, askOf(3).requestId], 2]);
  assert.deepEqual(roomFor.slice(-2), [true, false], "the log contains what is missing in the file");
});

test("giving a hold back needs no dead letter if nothing is lost, and one if the store has a charge instead", () => {
  const reasonOf = (ask: Parameters<typeof letterFor>[0], answer: Answer, orphan = false) =>
    letterFor(ask, orphan, answer)?.reason;
  const mismatch = { outcome: "mismatch", recorded: nanoUsd(5n) } as const;
  const stale = { outcome: "stale" } as Answer;
  const gone = { outcome: "unknown_account" } as const;
  assert.deepEqual([reasonOf(voidOf(1), gone), reasonOf(voidOf(1), stale)], [undefined, undefined]);
  assert.equal(reasonOf(voidOf(1), mismatch), "mismatch");
  assert.equal(reasonOf(voidOf(1), mismatch, true), undefined);
  // Money that would be lost from the books: what was absorbed, and what a disconnect left unpaid.
  assert.equal(reasonOf({ ...voidOf(1), absorbed: nanoUsd(1n) }, gone), "unknown_account");
  const leftUnpaid = { amount: nanoUsd(1n) } as unknown as NonNullable<ReturnType<typeof voidOf>["leftUnpaid"]>;
  assert.equal(reasonOf({ ...voidOf(1), leftUnpaid }, gone), "unknown_account");
  // And tries that an upstream bills, each of which is a line of the ledger.
  assert.equal(reasonOf({ ...voidOf(1), attempts: [ATTEMPT] }, gone), "unknown_account");
  assert.equal(reasonOf({ ...voidOf(1), costs: [COST] }, stale), "stale");
  assert.equal(reasonOf({ ...voidOf(1), attempts: [], costs: [] }, gone), undefined);
});
