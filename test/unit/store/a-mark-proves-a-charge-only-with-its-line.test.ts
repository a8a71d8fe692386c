/**
 * docs/failure-model.md row B13: a mark that a stopped script has left does not prove a charge, which is then sent again;
 * neither does an unreadable mark.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { accountKey, holdsKey, settledKey } from "../../../src/store/redis/keys.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { startRedis, type TestRedis } from "../../rig/redis.ts";
import { admitAsk, admitted, makeAccount, ridOf, settleAsk } from "./asks.ts";
import { openUrl } from "./benches.ts";

let redis: TestRedis;
let store: Store;
before(async () => {
  redis = await startRedis();
  store = await openUrl(redis);
});
after(async () => {
  await store.close();
  await redis.stop();
});

interface SettledOnce {
  readonly tag: AccountTag;
  /** The amount that the mark proves. */
  readonly amount: () => Promise<bigint | undefined>;
  /** Settles the request once more. @returns the outcome. */
  readonly again: () => Promise<string>;
}

/** An account with one settled request. */
async function settledOnce(name: string): Promise<SettledOnce> {
  const tag = await makeAccount(store, name);
  const request = admitAsk({ tag, requestId: ridOf(1) });
  const charge = settleAsk(request, admitted(await store.admit(request)), { amount: 60n });
  const again = async () => (await store.settle(charge)).outcome;
  assert.equal(await again(), "settled");
  const amount = async () => (await store.settledAmounts(tag, [ridOf(1)]))[0];
  assert.equal(await amount(), 60n);
  return { tag, amount, again };
}

test("a mark proves nothing while the account has a step to finish", async () => {
  const { tag, amount } = await settledOnce("Mtodo");
  await redis.command("HSET", accountKey(tag), "todo", "[]");
  assert.equal(await amount(), undefined);
});

test("a mark proves nothing if the account has not counted its ledger line", async () => {
  const { tag, amount, again } = await settledOnce("Mseq");
  const seq = Number((await redis.command("HGET", accountKey(tag), "seq")).split("\r\n")[1]);
  await redis.command("HSET", accountKey(tag), "seq", String(seq - 1));
  assert.equal(await amount(), undefined);
  assert.equal(await again(), "half_written");
  await redis.command("HSET", accountKey(tag), "seq", String(seq));
  assert.equal(await amount(), 60n);
  assert.equal(await again(), "duplicate");
});

test("a mark proves nothing while the hold exists", async () => {
  const { tag, amount, again } = await settledOnce("Mhold");
  await redis.command("HSET", holdsKey(tag), ridOf(1), "1");
  assert.equal(await amount(), undefined);
  assert.equal(await again(), "half_written");
});

test("a mark proves nothing if it is unreadable or its account is missing", async () => {
  const { tag, amount } = await settledOnce("Mtext");
  for (const text of ["", "no JSON", "7", '["seven","","1"]', '[60,"","1"]', "[]"]) {
    await redis.command("SET", settledKey(tag, ridOf(1)), text);
    assert.equal(await amount(), undefined, text);
  }
  await redis.command("SET", settledKey(tag, ridOf(1)), '["60",""]');
  assert.equal(await amount(), 60n, "written by a version without line numbers");
  await redis.command("DEL", accountKey(tag));
  assert.equal(await amount(), undefined);
});
