/**
 * Whoever asks for a request's lines gets them where the gateway's clock is ahead of the store's, and where the request
 * was settled long after it was issued, with many lines of others in between.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { newRequestId, printRequestId, type RequestId } from "../../../src/values/request-id.ts";
import { admitAsk, settleAsk, tagOf } from "../store/asks.ts";
import { embeddedBench } from "../store/benches.ts";
import { startConsole } from "./running-console.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

async function account(t: test.TestContext) {
  const bench = await embeddedBench();
  t.after(() => bench.close());
  const { store } = bench;
  const { ask } = await startConsole(t, { store });
  const tag = tagOf("Clocks");
  await store.createAccount({ tag, name: "alice", plan: "free" });
  const fill = async (count: number) => {
    for (let n = 0; n < count; n++) {
      await store.credit(tag, { id: `pay_${bench.nowMs()}_${n}`, amount: 100n, kind: "topup", note: "" });
    }
  };
  const find = async (id: RequestId): Promise<[number, number | undefined]> => {
    const { status, json } = await ask("GET", `/admin/v1/accounts/alice/requests/${printRequestId(id)}`);
    return [status, json.items?.length];
  };
  return { bench, store, tag, fill, find };
}

async function charge(store: Store, tag: AccountTag, requestId: RequestId, admittedAtMs: number): Promise<void> {
  const permit = { storeTimeMs: admittedAtMs, group: "big", keyId: "key_1", entitlement: undefined };
  const { outcome } = await store.settle(settleAsk(admitAsk({ tag, requestId }), permit, { amount: 5n }));
  assert.equal(outcome, "settled");
}

test("lines from before the request was issued, by a clock nine minutes ahead", async (t) => {
  const { bench, store, tag, fill, find } = await account(t);
  await fill(3);
  bench.setTime(bench.nowMs() + HOUR_MS);
  const id = newRequestId(bench.nowMs() + 9 * MINUTE_MS, randomBytes);
  await charge(store, tag, id, bench.nowMs());
  assert.deepEqual(await find(id), [200, 1]);
});

test("lines that were written two days after the request, behind 250 others", async (t) => {
  const { bench, store, tag, fill, find } = await account(t);
  const issuedMs = bench.nowMs();
  const id = newRequestId(issuedMs, randomBytes);
  bench.setTime(issuedMs + HOUR_MS);
  await fill(250);
  bench.setTime(issuedMs + 48 * HOUR_MS);
  await charge(store, tag, id, issuedMs);
  assert.deepEqual(await find(id), [200, 1]);
});
