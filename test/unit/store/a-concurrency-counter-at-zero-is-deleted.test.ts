/**
 * A counter of requests in flight is deleted with the last request, so that an account does not grow with every group or key
 * that it ever had.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limitsText } from "../../../src/store/limits/limits.ts";
import { accountKey } from "../../../src/store/redis/keys.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk, terms } from "./asks.ts";
import { redisBench } from "./benches.ts";

test("counters of requests in flight are deleted when they reach zero, by a settlement and by an expired hold", async (t) => {
  const { redis, store, nowMs, setTime, close } = await redisBench();
  t.after(close);
  const tag = await makeAccount(store, "Zero");
  await store.changeKey(tag, "key_Zero", { limits: limitsText({ concurrency: 5 }) });
  const askOf = (n: number) =>
    admitAsk({ tag, requestId: ridOf(n), groups: [terms({ perKey: true })], holdTtlMs: 1_000 });
  const counters = async () =>
    (await redis.command("HKEYS", accountKey(tag))).split("\r\n").filter((name) => /^k?c:/.test(name));
  const first = admitted(await store.admit(askOf(1)));
  assert.deepEqual((await counters()).sort(), ["c:big/key_Zero", "kc:key_Zero"]);
  await store.settle(settleAsk(askOf(1), first, { amount: 1n, counted: first.counted }));
  assert.deepEqual(await counters(), [], "settled");
  admitted(await store.admit(askOf(2)));
  setTime(nowMs() + 1_001);
  // Any step of the account releases expired holds.
  await store.extend({ tag, requestId: ridOf(2), target: first.hold });
  assert.deepEqual(await counters(), [], "ended");
});
