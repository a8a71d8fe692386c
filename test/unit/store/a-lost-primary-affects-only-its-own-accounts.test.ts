// docs/failure-model.md row B7: the loss of one primary of a cluster affects only the accounts on it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { openStore } from "../../../src/store/open.ts";
import { startRedisCluster, type TestRedis } from "../../rig/redis.ts";
import { stopwatch } from "../../rig/stopwatch.ts";
import { admitAsk, causeOf, makeAccount, ridOf } from "./asks.ts";

const ACCOUNTS = 24;
const LIMIT_MS = 600;

function onlyAway(error: unknown): "" {
  assert.ok(error instanceof StoreError, String(error));
  return "";
}

test("with one primary of three down, its accounts are unavailable in time and all others are served", async () => {
  const cluster = await startRedisCluster();
  const store = await openStore({
    kind: "redis-cluster",
    nodes: cluster.nodes,
    tls: undefined,
    username: undefined,
    password: undefined,
  });
  try {
    const tags = [];
    for (let i = 0; i < ACCOUNTS; i++) tags.push(await makeAccount(store, `Shard${i}x`));
    const [survivor, , lost] = cluster.servers as [TestRedis, TestRedis, TestRedis];
    await lost.stop();
    const outcomes = { served: 0, away: 0 };
    for (const tag of tags) {
      const slot = Number((await survivor.command("CLUSTER", "KEYSLOT", `{a:${tag}}`)).slice(1));
      const timed = stopwatch();
      const ask = () => store.admit(admitAsk({ tag, requestId: ridOf(1) }));
      if (slot >= 10_922) {
        await assert.rejects(ask(), StoreError);
        assert.ok(timed() < LIMIT_MS);
        outcomes.away++;
      } else {
        // The other primaries vote on the lost one meanwhile: one that is busy with that is asked again, with the same request.
        let cause = "";
        for (let tries = 0; cause === "" && tries < 3; tries++) cause = await ask().then(causeOf, onlyAway);
        assert.equal(cause, "admitted");
        outcomes.served++;
      }
    }
    assert.ok(outcomes.served > 0 && outcomes.away > 0, JSON.stringify(outcomes));
  } finally {
    await store.close();
    await cluster.stop();
  }
});
