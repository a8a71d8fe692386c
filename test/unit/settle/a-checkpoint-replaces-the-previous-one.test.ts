/**
 * docs/failure-model.md row A3: after a kill, what a long stream has produced is known up to its last checkpoint. In memory
 * each checkpoint replaces the one before when they are at least half a second apart.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Unsettled } from "../../../src/settle/journal/entry.ts";
import { RECORD } from "../../../src/settle/journal/frame.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { askOf, idOf, ManualClock, type Opened, openOn, turns, voidOf } from "./rig.ts";
import { SimDisk } from "./sim-disk.ts";

const APART_MS = 600;
const STREAM = 1;

interface Scene extends Opened {
  readonly disk: SimDisk;
  readonly clock: ManualClock;
}

async function open(): Promise<Scene> {
  const [disk, clock] = [new SimDisk(), new ManualClock()];
  const scene = { ...(await openOn(disk, clock)), disk, clock };
  scene.journal.open({ voided: voidOf(STREAM), hold: nanoUsd(1_000n) });
  return scene;
}

/** With a memo that grows and contains characters beyond ASCII. */
const produced = (amount: number) => ({
  ...askOf(STREAM, amount),
  memo: JSON.stringify({ text: "ä€".repeat(amount) }),
});

async function checkpoint({ journal, clock }: Scene, amount: number, apartMs = APART_MS): Promise<void> {
  await clock.advance(apartMs);
  journal.checkpoint(produced(amount));
}

async function demandFound({ disk }: Scene, amount: number): Promise<void> {
  const { leftovers } = await openOn(disk.afterKill(), new ManualClock());
  const found = leftovers.find(({ ask }) => ask.requestId === idOf(STREAM));
  assert.deepEqual([found?.ask.amount, found?.ask.memo], [nanoUsd(BigInt(amount)), produced(amount).memo]);
}

/** Makes other charges, which the store takes, until the journal is short of room. */
async function fill({ journal, clock }: Scene): Promise<void> {
  for (let number = 100; journal.health().fillRatio < 0.75; number++) {
    journal.open({ voided: voidOf(number), hold: nanoUsd(1n) });
    const final = journal.final(askOf(number));
    await turns(3);
    await clock.advance(5);
    await final;
    journal.ack(idOf(number), "settled");
  }
  await clock.advance(APART_MS);
}

test("after a kill at any checkpoint, recovery finds the newest one", async () => {
  const scene = await open();
  for (let amount = 1; amount <= 20; amount++) {
    await checkpoint(scene, amount, amount % 4 === 0 ? 10 : APART_MS);
    await demandFound(scene, amount);
  }
});

test("checkpoints in quick succession are kept one by one, those of a long stream in one buffer", () => {
  const unsettled = new Unsettled();
  const id = idOf(STREAM);
  assert.equal(unsettled.checkpoint(id, 0, "nobody"), undefined);
  unsettled.add(id, { type: RECORD.open, atMs: 0, payload: "open", segment: 1, kept: 0 });
  const entries = [0, 10, 600, 1_200, 1_210, 1_800].map((atMs) => {
    const payload = `"${"ä".repeat(atMs)}"`;
    const entry = unsettled.checkpoint(id, atMs, payload);
    assert.deepEqual([entry?.payload, entry?.atMs], [payload, atMs]);
    assert.deepEqual(
      [...unsettled.lastWords()].map((last) => last.entry),
      [entry],
    );
    return entry;
  });
  assert.notEqual(entries[0], entries[1]);
  assert.notEqual(entries[1], entries[2]);
  assert.equal(new Set(entries.slice(2)).size, 1);
  // A shorter checkpoint has no remainder of the longer one behind it.
  assert.equal(unsettled.checkpoint(id, 2_400, "short")?.payload, "short");
  assert.equal(entries[5]?.payload, "short");
  unsettled.add(id, { type: RECORD.final, atMs: 2_500, payload: "final", segment: 1, kept: 0 });
  assert.equal(unsettled.checkpoint(id, 3_000, "late"), undefined);
});

test("the newest checkpoint is written again when its segment is removed, and the next one even during the removal", async () => {
  const scene = await open();
  for (const amount of [1, 2, 3]) await checkpoint(scene, amount);
  const [first] = scene.disk.segments();
  await fill(scene);
  const cleaned = scene.log.clean(Number.POSITIVE_INFINITY);
  await turns(3);
  await checkpoint(scene, 4);
  await scene.clock.advance(5);
  await cleaned;
  await scene.log.clean(Number.POSITIVE_INFINITY);
  assert.ok(!scene.disk.segments().includes(first as string), "the first segment is gone");
  await demandFound(scene, 4);
  await checkpoint(scene, 5);
  await demandFound(scene, 5);
});

test("a checkpoint that the disk refused is written when the disk has recovered, and the one before is kept until then", async () => {
  const scene = await open();
  for (const amount of [1, 2, 3]) await checkpoint(scene, amount);
  scene.disk.fault = { at: scene.disk.calls + 1, times: 4, code: "EIO" };
  await checkpoint(scene, 4);
  scene.disk.fault = undefined;
  await demandFound(scene, 3);
  await scene.clock.advance(1_000);
  await scene.clock.advance(5);
  await demandFound(scene, 4);
});

test("the charge of the stream replaces its checkpoints", async () => {
  const scene = await open();
  for (const amount of [1, 2, 3]) await checkpoint(scene, amount);
  const final = scene.journal.final(askOf(STREAM, 9));
  await turns(3);
  await scene.clock.advance(5);
  await final;
  await checkpoint(scene, 10);
  const { leftovers } = await openOn(scene.disk.afterKill(), new ManualClock());
  assert.deepEqual(
    leftovers.map(({ ask, final: isFinal }) => [ask.amount, isFinal]),
    [[nanoUsd(9n), true]],
  );
});
