/** The arguments of a script are assembled as text; quotes, backslashes, control characters and umlauts arrive unchanged. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { utcDay } from "../../../src/values/time.ts";
import { startRedis } from "../../rig/redis.ts";
import { admitAsk, admitted, hashOf, leftUnpaid, ridOf, settleAsk, tagOf, terms } from "./asks.ts";
import { embeddedBench, openUrl } from "./benches.ts";

const GROUP = 'grün "1" \\ \u0001\n🌱';
const MODEL = 'm"odel\\n, \u2028';
const UPSTREAM = 'öst","\\';
const MEMO = '{"a":"\\"b\\\\","c":"ü"}';
const TOKENS = { input: 30, cachedInput: 0, cacheWrite: 0, output: 12, reasoning: 0 };

/**
 * One charge with a failed try, and a client that disconnected beyond its allowance. @returns everything that is kept of both.
 */
async function settled(store: Store) {
  const tag = tagOf("Any");
  await store.createAccount({ tag, name: "Any", plan: 'pl"an\\' });
  await store.createKey(tag, { id: 'k"1\\', hash: hashOf("key"), group: GROUP });
  await store.credit(tag, { id: "p1", kind: "topup", amount: nanoUsd(1_000n), note: "" });
  const groups = [terms({ group: GROUP, requestsPerMinute: 60, tokensPerMinute: 6_000 })];
  const cost = { upstream: UPSTREAM, model: MODEL, requests: 1, tokens: TOKENS, absorbed: nanoUsd(0n) };
  const answers = [];
  let day = "";
  for (const number of [1, 2]) {
    const ask = admitAsk({ tag, requestId: ridOf(number), model: MODEL, plans: ['pl"an\\'], groups });
    const permit = admitted(await store.admit(ask));
    day = utcDay(permit.storeTimeMs);
    const charge =
      number === 1
        ? {
            amount: 40n,
            costs: [{ ...cost, cost: nanoUsd(9n), charged: true }],
            attempts: [{ upstream: UPSTREAM, cause: 'c"\\', amount: nanoUsd(3n), memo: MEMO }],
          }
        : { voided: true, absorbed: 5n, absorbedCause: 'left"\\', leftUnpaid: leftUnpaid(0n, 7n, { memo: MEMO }) };
    const ending = { model: MODEL, upstream: UPSTREAM, tokens: TOKENS, tokensUsed: 42, memo: MEMO, ...charge };
    answers.push({ group: permit.group, keyId: permit.keyId }, await store.settle(settleAsk(ask, permit, ending)));
  }
  const lines = (await store.readLedger(tag, 0, 100)).map(({ atMs: _, ...line }) => line);
  const sums = (await store.readDays(tag, day, day)).map(({ day: _, ...sum }) => sum);
  return { answers, lines, sums };
}

test("names with any characters are settled alike in Redis and in the embedded store", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const remote = await openUrl(redis);
  t.after(() => remote.close());
  const embedded = await embeddedBench();
  t.after(() => embedded.close());
  const expected = await settled(embedded.store);
  assert.deepEqual(await settled(remote), expected);
  assert.deepEqual(expected.lines.map(({ kind, group, model, memo }) => ({ kind, group, model, memo })).slice(1, 2), [
    { kind: "usage", group: GROUP, model: MODEL, memo: MEMO },
  ]);
  assert.equal(expected.sums.length, 1);
});

test("a lone UTF-16 surrogate does not make a charge fail", async (t) => {
  const redis = await startRedis();
  t.after(() => redis.stop());
  const store = await openUrl(redis);
  t.after(() => store.close());
  const tag = tagOf("Half");
  await store.createAccount({ tag, name: "Half", plan: "free" });
  await store.createKey(tag, { id: "k1", hash: hashOf("half"), group: "money" });
  await store.credit(tag, { id: "p1", kind: "topup", amount: nanoUsd(1_000n), note: "" });
  const groups = [terms({ group: "money" })];
  const model = "m\ud800";
  for (const [number, memo] of [MEMO, "\udc00"].entries()) {
    const ask = admitAsk({ tag, requestId: ridOf(number), keyHash: hashOf("half"), model, plans: ["free"], groups });
    const permit = admitted(await store.admit(ask));
    const { outcome } = await store.settle(settleAsk(ask, permit, { model, amount: 1n, memo }));
    assert.equal(outcome, "settled");
  }
});
