// docs/failure-model.md rows B9 and B11: an error reply means that the outcome is unknown; it is never read as "there
// is no such key". NOPERM closes the store for a moment: the-rights-of-the-redis-user-are-known.test.ts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { Secret } from "../../../src/values/secret.ts";
import { type FaultProxy, startFaultProxy } from "../../rig/fault-proxy.ts";
import { startRedis, type TestRedis } from "../../rig/redis.ts";
import { admitAsk, admitted, causeOf, hashOf, makeAccount, ridOf, settleAsk } from "./asks.ts";
import { openUrl } from "./benches.ts";

const ERRORS = [
  "LOADING Redis is loading the dataset in memory",
  "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
  "CLUSTERDOWN The cluster is down",
  "BUSY Redis is busy running a script.",
  "OOM command not allowed when used memory > 'maxmemory'.",
  "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
  "NOREPLICAS Not enough good replicas to write.",
  "NOAUTH Authentication required.",
  "TRYAGAIN Multiple keys request during rehashing of slot",
  "ERR something that nobody has thought of",
];

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

for (const [i, error] of ERRORS.entries()) {
  test(`${error.split(" ")[0]}: once is retried, twice is "unavailable", at admission and at settlement`, async () => {
    const tag = await makeAccount(store, `Err${i}x`);
    const request = admitAsk({ tag, requestId: ridOf(1) });
    proxy.answerWith(error, 2);
    await assert.rejects(store.admit(request), (e) => e instanceof StoreError && e.kind === "unavailable");
    proxy.answerWith(error, 2);
    await assert.rejects(store.readKey(tag, hashOf("key")), StoreError);
    proxy.answerWith(error, 1);
    const permit = admitted(await store.admit(request));
    proxy.answerWith(error, 2);
    await assert.rejects(store.settle(settleAsk(request, permit, { amount: 9n })), StoreError);
    assert.equal((await store.getAccount(tag))?.balance, 1_000n);
    proxy.answerWith(error, 1);
    assert.equal((await store.settle(settleAsk(request, permit, { amount: 9n }))).outcome, "settled");
    assert.equal((await store.getAccount(tag))?.balance, 991n);
  });
}

test("a Redis that became a replica (READONLY) gives no answer, and the store switches to the primary", async () => {
  const direct = await openUrl(redis);
  try {
    const tag = await makeAccount(direct, "Readonly");
    await redis.command("REPLICAOF", "127.0.0.1", "1");
    await assert.rejects(direct.admit(admitAsk({ tag, requestId: ridOf(1) })), StoreError);
    await assert.rejects(direct.check(), /a primary is needed|did not answer/);
    await redis.command("REPLICAOF", "NO", "ONE");
    let answer = "";
    while (answer === "") {
      answer = await direct.admit(admitAsk({ tag, requestId: ridOf(2) })).then(causeOf, () => "");
    }
    assert.equal(answer, "admitted");
  } finally {
    await direct.close();
  }
});

test("under memory pressure a script is refused as a whole, and nothing is half done (row B11)", async () => {
  const direct = await openUrl(redis);
  try {
    const tag = await makeAccount(direct, "Memory");
    const before_ = await direct.inspect(tag);
    await redis.command("CONFIG", "SET", "maxmemory", "1");
    await assert.rejects(direct.admit(admitAsk({ tag, requestId: ridOf(1) })), /OOM/);
    await redis.command("CONFIG", "SET", "maxmemory", "0");
    assert.deepEqual(await direct.inspect(tag), before_);
  } finally {
    await direct.close();
  }
});
