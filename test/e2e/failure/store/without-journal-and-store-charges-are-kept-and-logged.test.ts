/**
 * The journal cannot write: with the store reachable, charges go directly to it; with the store unreachable as well,
 * they are kept in memory (`unrecorded_charges`), settled when the store is back, and logged if the process ends
 * before.
 */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import test, { type TestContext } from "node:test";
import { PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { HandClock } from "../../protocol/whole/hand-clock.ts";
import { type Scene, scene, settledState } from "./rig.ts";

/** Their FINAL records do not fit into what is left of a journal of sixteen segments of 4 KiB. */
const RUNNING = 30;

/** Requests that were admitted and are at their model's server, and a journal that has lost its folder. */
async function withoutJournal(t: TestContext, clock?: HandClock): Promise<{ s: Scene; running: Promise<string[]> }> {
  const s = await scene(t, {
    ...(clock ? { clock } : {}),
    settings: (settings) => ({ ...settings, journal: { ...settings.journal, bytesMax: 64 * 1_024 } }),
  });
  s.here.simulator.hold();
  const running = Promise.all(Array.from({ length: RUNNING }, (_, i) => s.status(PROTOCOL_LIST[i % 3])));
  await s.here.simulator.waitFor(RUNNING);
  rmSync(s.here.settings.journal.dir, { recursive: true });
  return { s, running };
}

const NOT_IN_JOURNAL = "a charge is not in the journal; the store is asked";
const served = Array.from({ length: RUNNING }, () => "200");

test("if the journal cannot write, running requests are charged in the store before they end, and new ones are refused", async (t) => {
  const { s, running } = await withoutJournal(t);
  s.here.simulator.release();
  assert.deepEqual(await running, served);
  assert.ok(s.here.log.some(({ msg }) => msg === NOT_IN_JOURNAL));
  assert.equal(await s.metric("unrecorded_charges"), 0);
  assert.equal(await s.status(), "503 journal_full");
  await settledState(s, RUNNING);
});

test("if neither can write, running requests end well, are reported, and are charged once when the store is back", async (t) => {
  const { s, running } = await withoutJournal(t);
  await s.proxy.refuse();
  s.here.simulator.release();
  assert.deepEqual(await running, served);
  assert.ok((await s.metric("unrecorded_charges")) > 0);
  assert.match(await s.status(), /^503 (journal_full|store_unavailable)$/);
  await s.proxy.accept();
  await settledState(s, RUNNING);
  assert.equal(await s.metric("unrecorded_charges"), 0);
});

test("if neither can write until the process ends, each charge is logged as a last resort", async (t) => {
  const clock = new HandClock();
  const { s, running } = await withoutJournal(t, clock);
  await s.proxy.refuse();
  s.here.simulator.release();
  assert.deepEqual(await running, served);
  const unrecorded = await s.metric("unrecorded_charges");
  assert.ok(unrecorded > 0);
  let closed = false;
  const closing = s.here.gateway.close().then(() => {
    closed = true;
  });
  while (!closed) {
    clock.advance(1_000);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await closing;
  const dumped = s.here.log.filter(({ msg }) => msg === "this charge is recorded nowhere but here");
  assert.equal(dumped.length, unrecorded);
  for (const { charge } of dumped as { charge: Record<string, unknown> }[]) {
    assert.equal(charge.tag, s.account.tag);
    assert.match(String(charge.amount), /^[1-9]\d*$/);
    assert.match(String(charge.requestId), /./);
  }
});
