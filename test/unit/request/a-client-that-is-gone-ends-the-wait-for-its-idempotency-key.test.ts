/** docs/api.md: the end of an answer waits for its idempotency key to be free, for a short time and only while its client is there. */
import assert from "node:assert/strict";
import test from "node:test";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { keyFreed } from "../../../src/request/settlement.ts";
import { FakeClock } from "../dispatch/rig.ts";

/** The wait of a request whose store does not answer, unless told. @returns what ends it, and whether it has ended. */
function waiting({ gone = false, settled = new Promise<void>(() => {}) } = {}) {
  const clock = new FakeClock();
  const reply = {
    gone,
    callbacks: [] as (() => void)[],
    onGone(callback: () => void) {
      this.callbacks.push(callback);
    },
  };
  const settler = { unsettled: () => settled };
  const run = { permit: { tag: "t" }, reply } as unknown as Run;
  let ended = false;
  const wait = keyFreed(run, { settler, clock } as unknown as PipelineParts).then(() => {
    ended = true;
  });
  const isOver = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    return ended;
  };
  const disconnect = () => {
    for (const callback of reply.callbacks) callback();
  };
  return { clock, wait, isOver, disconnect };
}

test("the store's answer ends the wait at once", async () => {
  const store = Promise.withResolvers<void>();
  const { wait, isOver } = waiting({ settled: store.promise });
  assert.equal(await isOver(), false);
  store.resolve();
  await wait;
});

test("a client that disconnects ends the wait", async () => {
  const { wait, isOver, disconnect } = waiting();
  assert.equal(await isOver(), false);
  disconnect();
  await wait;
});

test("nothing waits for a client that has disconnected before", async () => {
  await waiting({ gone: true }).wait;
});

test("a store that does not answer ends the wait after 0.4 seconds", async () => {
  const { clock, wait, isOver } = waiting();
  clock.advance(399);
  assert.equal(await isOver(), false);
  clock.advance(1);
  await wait;
});
