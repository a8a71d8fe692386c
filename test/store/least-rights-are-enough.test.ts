// Row 82: the Redis user of Tollgate sees its own keys and has no CONFIG, KEYS, FLUSHALL or EVAL over others' data.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openStore } from "../../src/store/open.ts";
import { Secret } from "../../src/values/secret.ts";
import { startRedis } from "../rig/redis.ts";
import { admitAsk, admitted, codeHashOf, DAY_MS, hashOf, makeAccount, ridOf, settleAsk } from "./asks.ts";

/** What the operator's guide gives: these keys, these commands, no more. */
const RIGHTS = [
  ..."~{a:* ~c:* ~idx:accounts ~{idx:accounts}:names ~idx:codes ~{idx:codes}:* ~epoch:* resetchannels -@all".split(" "),
  ..."+evalsha +eval +info +scan +time +hget +hset +hmget +hgetall +hdel +hexists +hincrby +get +set +del".split(" "),
  ..."+zadd +zrem +zscore +zrangebyscore +zrangebylex +xadd +xrange +wait".split(" "),
];

test("a Redis user with only the rights that the guide names runs every operation", async () => {
  const redis = await startRedis();
  await redis.command("ACL", "SETUSER", "tollgate", "on", ">secret", ...RIGHTS);
  const url = new Secret(`redis://tollgate:secret@127.0.0.1:${redis.port}/0`);
  const store = await openStore({ kind: "redis", url });
  try {
    await store.check();
    const mark = await store.countEpoch(0, undefined, "fresh");
    assert.deepEqual(mark, { id: "fresh", count: 1, past: [], stopped: false });
    await store.stopEpoch(0, "fresh");
    assert.equal((await store.renewEpoch(0, "fresh", { id: "next", past: ["fresh"] }))?.id, "next");
    const tag = await makeAccount(store, "Rights");
    assert.equal(await store.createAccount({ tag: "RightsTwo0" as never, name: "Rights", plan: "free" }), "exists");
    const card = {
      id: "c",
      card: "day",
      plan: "p",
      group: "g",
      lastsMs: DAY_MS,
      afterPrevious: true,
      quota: undefined,
    };
    await store.grant(tag, { ...card, reference: "r" });
    const day = {
      card: "day",
      plan: "p",
      group: "g",
      lastsMs: DAY_MS,
      starts: "at_redemption",
      quota: undefined,
    } as const;
    await store.createCodes(day, [
      { id: "code_1", hash: codeHashOf("1") },
      { id: "code_2", hash: codeHashOf("2") },
    ]);
    assert.equal((await store.redeem({ hash: codeHashOf("1"), tag })).outcome, "redeemed");
    assert.equal((await store.voidCode("code_2"))?.state, "void");
    assert.equal((await store.listCodes(undefined, 10)).items.length, 2);
    assert.equal(await store.finishClaims(10), 0);
    assert.equal((await store.listCards(tag))?.cards.length, 2);
    assert.deepEqual(await store.readDays(tag, "2026-06-01", "2026-06-03"), []);
    const request = admitAsk({ tag, requestId: ridOf(1) });
    const permit = admitted(await store.admit(request));
    assert.equal((await store.settle(settleAsk(request, permit, { amount: 5n }))).outcome, "settled");
    await store.setPlan(tag, "pro");
    await store.setKeyGroup(tag, "key_Rights", "other");
    await store.revokeKey(tag, "key_Rights");
    assert.equal((await store.readKey(tag, hashOf("key")))?.key.status, "revoked");
    assert.equal((await store.listAccounts(undefined, 10)).items.length, 1);
    assert.equal((await store.listKeys(tag)).length, 1);
    assert.equal((await store.inspect(tag))?.ledger.length, 4);
  } finally {
    await store.close();
    await redis.stop();
  }
});
