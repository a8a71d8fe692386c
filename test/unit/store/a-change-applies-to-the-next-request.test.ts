// ARCHITECTURE.md promise 4, docs/failure-model.md invariant 15: no cache is ever authoritative.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { startRedis } from "../../rig/redis.ts";
import { admitAsk, causeOf, hashOf, makeAccount, ridOf, settleAsk, terms } from "./asks.ts";
import { embeddedBench, openUrl } from "./benches.ts";

const CHANGES = 5_000;
const SUSPENSIONS = 500;
const REVOCATIONS = 500;
const CLOSINGS = 100;

async function violations(stores: readonly Store[], changes: number): Promise<number> {
  const [first] = stores as [Store];
  const tag = await makeAccount(first, "Next", { funds: 1_000_000n });
  const groups = [terms({ group: "red" }), terms({ group: "blue" })];
  const anyOf = (i: number) => stores[(i * 7 + 3) % stores.length] as Store;
  let wrong = 0;
  for (let i = 1; i <= changes; i++) {
    const group = i % 2 === 0 ? "red" : "blue";
    await (stores[i % stores.length] as Store).changeKey(tag, "key_Next", { group });
    const request = admitAsk({ tag, requestId: ridOf(i), groups });
    const answer = await anyOf(i).admit(request);
    if (answer.outcome !== "admitted" || answer.group !== group) wrong++;
    else void (await anyOf(i + 1).settle(settleAsk(request, answer, { voided: true })));
  }
  for (let i = 1; i <= SUSPENSIONS; i++) {
    const status = i % 2 === 0 ? "normal" : "suspended";
    await (stores[i % stores.length] as Store).changeKey(tag, "key_Next", { status });
    const request = admitAsk({ tag, requestId: ridOf(100_000 + i), groups });
    const answer = await anyOf(i).admit(request);
    if (causeOf(answer) !== (status === "normal" ? "admitted" : "suspended")) wrong++;
    if (answer.outcome === "admitted") await anyOf(i + 1).settle(settleAsk(request, answer, { voided: true }));
  }
  for (let i = 1; i <= SUSPENSIONS; i++) {
    const status = i % 2 === 0 ? "normal" : "suspended";
    await (stores[i % stores.length] as Store).changeAccount(tag, { status });
    const request = admitAsk({ tag, requestId: ridOf(200_000 + i), groups });
    const answer = await anyOf(i).admit(request);
    if (causeOf(answer) !== (status === "normal" ? "admitted" : "suspended")) wrong++;
    if (answer.outcome === "admitted") await anyOf(i + 1).settle(settleAsk(request, answer, { voided: true }));
  }
  for (let i = 1; i <= CLOSINGS; i++) {
    const closed = await makeAccount(first, `Closed${i}`);
    await (stores[i % stores.length] as Store).closeAccount(closed);
    const request = admitAsk({ tag: closed, requestId: ridOf(1), groups });
    if (causeOf(await anyOf(i).admit(request)) !== "revoked_key") wrong++;
  }
  for (let i = 1; i <= REVOCATIONS; i++) {
    const id = `key_Next${i}`;
    await first.createKey(tag, { id, hash: hashOf(id), group: "red" });
    await (stores[i % stores.length] as Store).revokeKey(tag, id);
    const request = admitAsk({ tag, requestId: ridOf(changes + i), keyHash: hashOf(id), groups });
    if (causeOf(await anyOf(i).admit(request)) !== "revoked_key") wrong++;
  }
  return wrong;
}

test("5,000 group changes, 500 suspensions and resumptions of a key and of its account, 500 revocations and 100 closings each apply to the next request, on any of four replicas", async () => {
  const redis = await startRedis();
  const stores = await Promise.all([1, 2, 3, 4].map(() => openUrl(redis)));
  try {
    assert.equal(await violations(stores, CHANGES), 0);
  } finally {
    await Promise.all(stores.map((store) => store.close()));
    await redis.stop();
  }
});

test("group changes, suspensions, revocations and closings apply to the next request: embedded", async () => {
  const bench = await embeddedBench();
  try {
    assert.equal(await violations([bench.store], 200), 0);
  } finally {
    await bench.close();
  }
});
