// docs/failure-model.md row 40: one code is redeemed 100 times at once, from 100 accounts and from one account; with
// Redis over four connections.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Store } from "../../../../src/store/contract.ts";
import type { RedeemAnswer } from "../../../../src/store/records.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { startRedis, type TestRedis } from "../../../rig/redis.ts";
import { makeAccount } from "../../../unit/store/asks.ts";
import { embeddedBench, openUrl, PATIENT } from "../../../unit/store/benches.ts";
import { card, sell } from "./rig.ts";

const FACE_VALUE = 5_000_000_000n;

interface Form {
  readonly stores: readonly Store[];
  readonly close: () => Promise<void>;
}

async function embedded(): Promise<Form> {
  const { store, close } = await embeddedBench();
  return { stores: [store], close };
}

async function redis(): Promise<Form> {
  const server: TestRedis = await startRedis();
  const stores = await Promise.all(Array.from({ length: 4 }, () => openUrl(server, PATIENT)));
  const close = async () => {
    await Promise.all(stores.map((store) => store.close()));
    await server.stop();
  };
  return { stores, close };
}

/** What all accounts received in total: quotas of their cards, and credits in their ledgers. */
async function credited(store: Store, tags: readonly AccountTag[]): Promise<{ quotas: bigint; lines: bigint }> {
  let quotas = 0n;
  let lines = 0n;
  for (const tag of tags) {
    const state = await store.inspect(tag);
    for (const { quota } of state?.entitlements ?? []) quotas += quota ?? 0n;
    for (const { kind, amount } of state?.ledger ?? []) if (kind === "card") lines += amount;
  }
  return { quotas, lines };
}

const count = (answers: readonly RedeemAnswer[], outcome: RedeemAnswer["outcome"]): number =>
  answers.filter((answer) => answer.outcome === outcome).length;

for (const [name, open] of [
  ["embedded", embedded],
  ["redis, four connections", redis],
] as const) {
  describe(`row 40 on ${name}`, () => {
    let form: Form;
    before(async () => {
      form = await open();
    });
    after(() => form?.close());
    const storeOf = (index: number): Store => form.stores[index % form.stores.length] as Store;

    test("if 100 accounts redeem one code at once, one gets it and all others are refused because it is used", async () => {
      const store = storeOf(0);
      const tags: AccountTag[] = [];
      for (let i = 0; i < 100; i++) tags.push(await makeAccount(store, `p${i}x`, { group: "cards", funds: 0n }));
      for (let round = 1; round <= 3; round++) {
        const [code] = await sell(store, 1);
        assert.ok(code);
        const answers = await Promise.all(tags.map((tag, i) => storeOf(i).redeem({ hash: code.hash, tag })));
        assert.deepEqual([count(answers, "redeemed"), count(answers, "used")], [1, 99]);
        const winner = answers.findIndex((answer) => answer.outcome === "redeemed");
        assert.equal((await store.getCode(code.id))?.tag, tags[winner]);
        const total = FACE_VALUE * BigInt(round);
        assert.deepEqual(await credited(store, tags), { quotas: total, lines: total });
      }
    });

    test("if one account redeems a code 100 times at once, it counts once and all others get the same answer", async () => {
      const store = storeOf(0);
      const tag = await makeAccount(store, "one", { group: "cards", funds: 0n });
      const [code] = await sell(store, 1, card());
      assert.ok(code);
      const { hash } = code;
      const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => storeOf(i).redeem({ hash, tag })));
      assert.deepEqual([count(answers, "redeemed"), count(answers, "again")], [1, 99]);
      const entitlements = answers.map((answer) => ("entitlement" in answer ? answer.entitlement : undefined));
      for (const entitlement of entitlements) assert.deepEqual(entitlement, entitlements[0]);
      assert.deepEqual(await credited(store, [tag]), { quotas: FACE_VALUE, lines: FACE_VALUE });
    });
  });
}
