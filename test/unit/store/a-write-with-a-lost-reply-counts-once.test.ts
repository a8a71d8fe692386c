// docs/failure-model.md row B5: with ioredis' defaults a request was charged twice when the reply of an EVAL was lost.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { Secret } from "../../../src/values/secret.ts";
import { type FaultProxy, startFaultProxy } from "../../rig/fault-proxy.ts";
import { startRedis, type TestRedis } from "../../rig/redis.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk } from "./asks.ts";
import { assertIdentities } from "./contract-settle.ts";

const ROUNDS = 10;
let redis: TestRedis;
let proxy: FaultProxy;
let store: Store;

before(async () => {
  redis = await startRedis();
  proxy = await startFaultProxy(redis.port);
  store = await openStore({ kind: "redis", url: new Secret(proxy.url) });
});
after(async () => {
  await store.close();
  await proxy.close();
  await redis.stop();
});

/** The reply is lost with the connection; the caller retries with the same ids until the store answers. */
async function untilAnswered<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      assert.equal((error as Error).name, "StoreError");
    }
  }
}

/** A script that Redis does not know yet would be answered with NOSCRIPT, and that reply would be the lost one. */
async function useEveryScript(): Promise<void> {
  const tag = await makeAccount(store, "Warm");
  const request = admitAsk({ tag, requestId: ridOf(1) });
  const permit = admitted(await store.admit(request));
  await store.extend({ tag, requestId: ridOf(1), target: nanoUsd(200n) });
  await store.settle(settleAsk(request, permit));
}

test("admission, extension, charge and payment count once when their replies are lost (rows B1, B5)", async () => {
  const tag = await makeAccount(store, "Lost", { funds: 1_000n });
  await useEveryScript();
  for (let number = 1; number <= ROUNDS; number++) {
    const request = admitAsk({ tag, requestId: ridOf(number) });
    proxy.loseNextReply();
    const permit = admitted(await untilAnswered(() => store.admit(request)));
    assert.equal((await untilAnswered(() => store.inspect(tag)))?.holds.length, 1);
    proxy.loseNextReply();
    const wider = { tag, requestId: ridOf(number), target: nanoUsd(250n) };
    assert.deepEqual(await untilAnswered(() => store.extend(wider)), { outcome: "held", hold: 250n });
    assert.equal((await untilAnswered(() => store.inspect(tag)))?.account.held, 250n);
    proxy.loseNextReply();
    const charge = settleAsk(request, permit, { amount: 10n });
    const answer = await untilAnswered(() => store.settle(charge));
    assert.equal(answer.outcome, "duplicate", "the try whose reply was lost had charged");
    proxy.loseNextReply();
    const payment = { id: `p${number}`, amount: 3n, kind: "topup", note: "" } as const;
    assert.equal((await untilAnswered(() => store.credit(tag, payment))).outcome, "duplicate");
  }
  assert.equal(proxy.faults(), 4 * ROUNDS);
  const state = await untilAnswered(() => store.inspect(tag));
  assert.ok(state);
  assert.equal(state.account.balance, 1_000n - 7n * BigInt(ROUNDS));
  assertIdentities(state);
});

test("a record that may be kept only once is recognised as the caller's own when the reply is lost", async () => {
  const tag = await makeAccount(store, "LostKey");
  const spend = (by: string) => store.keepSignIn(tag, { kind: "spent", id: "a", data: `{"by":"${by}"}`, only: "new" });
  await store.keepSignIn(tag, { kind: "spent", id: "warm", data: "{}" });
  proxy.loseNextReply();
  assert.equal(await untilAnswered(() => spend("one")), "kept");
  assert.equal(await untilAnswered(() => spend("another")), "unmet");
  assert.equal((await untilAnswered(() => store.findSignIn(tag, "spent", "a")))?.data, '{"by":"one"}');
});

test("an account whose creation reply was lost is not reported as taken", async () => {
  proxy.loseNextReply();
  const account = { tag: "LostTwo000", name: "LostTwo", plan: "free" } as const;
  const made = await untilAnswered(() => store.createAccount(account as never));
  assert.notEqual(made, "exists");
  assert.equal((await store.findAccount("LostTwo"))?.tag, "LostTwo000");
});
