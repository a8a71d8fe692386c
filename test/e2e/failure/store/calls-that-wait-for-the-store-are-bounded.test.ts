/**
 * docs/failure-model.md invariant 28, row B4: calls do not pile up while the store is slow, and do not all come at once
 * when it is back; servers are counted separately.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { createSettler } from "../../../../src/settle/settler.ts";
import type { Admitted } from "../../../../src/store/admission.ts";
import { type Store, StoreError } from "../../../../src/store/contract.ts";
import { composeStore } from "../../../../src/store/middleware/compose.ts";
import type { SettleAnswer } from "../../../../src/store/settlement.ts";
import { createLog } from "../../../../src/telemetry/log.ts";
import { createMetrics } from "../../../../src/telemetry/metrics.ts";
import { ManualClock, turns } from "../../../unit/settle/rig.ts";
import { admitAsk, hashOf, ridOf, settleAsk, tagOf } from "../../../unit/store/asks.ts";

const TAG = tagOf("Waits");
const OTHER = tagOf("Elsewhere");

/** A store of two servers that answers when the test says so. */
class SlowStore {
  readonly waiting: PromiseWithResolvers<unknown>[] = [];
  most = 0;
  asked = 0;

  #ask(): Promise<unknown> {
    const answer = Promise.withResolvers<unknown>();
    this.asked++;
    this.waiting.push(answer);
    this.most = Math.max(this.most, this.waiting.length);
    return answer.promise;
  }

  shardOf = (tag: string): string => (tag === OTHER ? "b" : "a");
  admit = () => this.#ask() as Promise<Admitted>;
  settle = () => this.#ask() as Promise<SettleAnswer>;
  readKey = () => this.#ask() as Promise<undefined>;

  async answerAll(): Promise<void> {
    while (this.waiting.length > 0) {
      for (const { resolve } of this.waiting.splice(0)) resolve({});
      await turns(2);
    }
  }

  async failAll(error: Error = new StoreError("unavailable", "away")): Promise<void> {
    for (const { reject } of this.waiting.splice(0)) reject(error);
    await turns(2);
  }
}

function bench() {
  const slow = new SlowStore();
  const clock = new ManualClock();
  const metrics = createMetrics();
  const log = createLog({ level: "silent" });
  const guard = composeStore(slow as unknown as Store, { clock, random: () => 1, metrics, log, remote: true });
  const open = async () => Number(/^tollgate_store_breaker_open (\d)$/m.exec((await metrics.page()).body)?.[1]);
  return { slow, clock, guard, store: guard.store, open };
}

const ask = (number: number, tag = TAG) => admitAsk({ tag, requestId: ridOf(number) });
const charge = (number: number) =>
  settleAsk(ask(number), { storeTimeMs: 1, group: "big", keyId: "k", entitlement: undefined });
const unsent = (error: unknown) => error instanceof StoreError && error.outcome === "unsent";

test("512 requests wait for a server; the next one is refused at once and never sent", async () => {
  const { slow, store } = bench();
  const all = Array.from({ length: 512 }, (_, i) => store.admit(ask(i)));
  await assert.rejects(store.admit(ask(513)), unsent);
  await assert.rejects(store.readKey(TAG, hashOf("key")), unsent);
  assert.equal(slow.asked, 512);
  const elsewhere = store.admit(ask(514, OTHER));
  await slow.answerAll();
  await Promise.all([...all, elsewhere]);
});

test("settlements wait in a queue and are all sent, 64 at a time", async () => {
  const { slow, store } = bench();
  const all = Array.from({ length: 500 }, (_, i) => store.settle(charge(i)));
  await turns(2);
  assert.equal(slow.waiting.length, 64);
  await slow.answerAll();
  await Promise.all(all);
  assert.deepEqual([slow.asked, slow.most], [500, 64]);
});

test("the charges of 200 clients whose requests end in one turn are sent before the clients get the ends of their answers", async () => {
  const { slow, clock, store } = bench();
  const settler = createSettler({
    ...{ store, clock, journal: { final: async () => {}, ack() {} }, deadLetters: { add: async () => {} } },
    ...{ onSettled() {}, onDelay() {}, onUnrecorded() {} },
  });
  const line = Array.from({ length: 100 }, (_, i) => store.settle(charge(i)));
  const askedAtEnd: number[] = [];
  const ends = Array.from({ length: 200 }, async (_, i) => {
    await settler.settle(charge(100 + i));
    askedAtEnd.push(slow.asked);
  });
  await Promise.all(ends);
  assert.deepEqual([...new Set(askedAtEnd)], [64 + 200]);
  await slow.answerAll();
  await Promise.all(line);
});

test("if thousands of requests end in one turn, 512 charges are sent at once and the others wait in the queue", async () => {
  const { slow, store } = bench();
  const all = Array.from({ length: 2_000 }, (_, i) => store.settle(charge(i), true));
  await turns(2);
  assert.equal(slow.waiting.length, 512 + 64);
  await slow.answerAll();
  await Promise.all(all);
  assert.deepEqual([slow.asked, slow.most], [2_000, 512 + 64]);
  const again = Array.from({ length: 512 }, (_, i) => store.settle(charge(i), true));
  await turns(2);
  assert.equal(slow.waiting.length, 512, "every call has released its slot");
  await slow.answerAll();
  await Promise.all(again);
});

test("a charge that no client waits for is queued from the start", async () => {
  const { slow, clock, store } = bench();
  const settler = createSettler({
    ...{ store, clock, journal: { final: async () => {}, ack() {} }, deadLetters: { add: async () => {} } },
    ...{ onSettled() {}, onDelay() {}, onUnrecorded() {} },
  });
  await Promise.all(Array.from({ length: 200 }, (_, i) => settler.settle(charge(i), false)));
  assert.equal(slow.waiting.length, 64);
  await slow.answerAll();
  assert.deepEqual([slow.asked, settler.pending()], [200, 0]);
});

test("a charge that is sent again is queued", async () => {
  const { slow, clock, store, guard } = bench();
  const settler = createSettler({
    ...{ store, clock, random: () => 1, journal: { final: async () => {}, ack() {} } },
    ...{ deadLetters: { add: async () => {} }, onSettled() {}, onDelay() {}, onUnrecorded() {} },
  });
  await Promise.all(Array.from({ length: 200 }, (_, i) => settler.settle(charge(i))));
  const busy = new StoreError("unavailable", "busy", { outcome: "refused" });
  await slow.failAll(busy);
  await clock.advance(50);
  assert.deepEqual([slow.asked, slow.waiting.length], [264, 64]);
  await slow.answerAll();
  assert.deepEqual([slow.asked, settler.pending()], [400, 0]);
  guard.stop();
});

test("an outage refuses the rest of the queue at once, and accounts of the other server are served", async () => {
  const { slow, clock, store, guard, open } = bench();
  const all = Promise.allSettled(Array.from({ length: 500 }, (_, i) => store.settle(charge(i))));
  await turns(2);
  await slow.failAll();
  assert.ok((await all).every(({ status }) => status === "rejected"));
  assert.equal(slow.asked, 64);
  assert.equal(await open(), 1);
  await assert.rejects(store.admit(ask(1)), unsent);
  const elsewhere = store.admit(ask(2, OTHER));
  await slow.answerAll();
  await elsewhere;
  await clock.advance(5_000);
  await slow.failAll();
  assert.deepEqual(guard.reasons(), [], "a part of the cluster serves");
  guard.stop();
});

test("five seconds without an answer in time make the gateway not ready, until answers come again", async () => {
  const { slow, clock, store, guard, open } = bench();
  const all = Promise.allSettled(Array.from({ length: 5 }, (_, i) => store.admit(ask(i))));
  await slow.failAll();
  await all;
  for (let ms = 0; ms < 6_000; ms += 100) {
    assert.equal(guard.reasons().length, ms >= 5_000 ? 1 : 0, `${ms} ms`);
    await clock.advance(100);
    await slow.failAll();
  }
  await clock.advance(2_000);
  await slow.answerAll();
  assert.deepEqual([guard.reasons(), await open()], [[], 0]);
  const served = store.admit(ask(9));
  await slow.answerAll();
  await served;
});

test("an error caused by one account's own records does not open the breaker", async () => {
  const { slow, store, open } = bench();
  for (let i = 0; i < 50; i++) {
    const answer = assert.rejects(store.admit(ask(i)));
    await turns(1);
    await slow.failAll(new StoreError("unavailable", "WRONGTYPE", { outcome: "refused" }));
    await answer;
  }
  assert.equal(await open(), 0);
});
