/**
 * docs/failure-model.md invariant 35: whatever an operator writes is answered when a replica has it; with a replica that
 * hangs, the operator hears of each write that it may be lost.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { type Store, UnconfirmedError } from "../../../src/store/contract.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { startRedis } from "../../rig/redis.ts";
import { until } from "../settle/lossy-scene.ts";
import { codeHashOf, DAY_MS, hashOf, makeAccount, tagOf } from "./asks.ts";
import { openUrl } from "./benches.ts";

const CARD = { card: "day", plan: "pro", group: "cards", lastsMs: DAY_MS };
const CODE = {
  ...CARD,
  starts: "at_redemption",
  quota: nanoUsd(5n),
  expiresAtMs: undefined,
  batch: undefined,
} as const;
const [MADE, VOIDED, REDEEMED] = ["code_made", "code_voided", "code_redeemed"] as const;
const codesOf = (...ids: readonly string[]) => ids.map((id) => ({ id, hash: codeHashOf(id) }));

/** A store whose replica has an account with a key and two codes, and answers no more. */
async function behindAHangingReplica(t: TestContext) {
  const primary = await startRedis();
  t.after(() => primary.stop());
  const replica = await startRedis({ args: ["--replicaof", "127.0.0.1", `${primary.port}`] });
  t.after(() => replica.stop());
  await until("the primary has no replica", async () =>
    (await primary.command("INFO", "replication")).includes("state=online"),
  );
  const store = await openUrl(primary);
  t.after(() => store.close());
  const tag = await makeAccount(store, "Operated", { funds: 100n });
  await store.createKey(tag, { id: "key_1", hash: hashOf("one"), group: "big" });
  await store.createCodes(CODE, codesOf(VOIDED, REDEEMED), undefined);
  replica.freeze();
  return { operators: store.confirming(), tag };
}

type Tag = ReturnType<typeof tagOf>;
const WRITES: readonly (readonly [name: string, write: (store: Store, tag: Tag) => Promise<unknown>])[] = [
  ["createAccount", (store) => store.createAccount({ tag: tagOf("Another"), name: "another", plan: "free" })],
  ["setPlan", (store, tag) => store.setPlan(tag, "pro")],
  ["setAccountLimits", (store, tag) => store.setAccountLimits(tag, '{"day":"5"}')],
  ["setNotifyBelow", (store, tag) => store.setNotifyBelow(tag, nanoUsd(7n))],
  ["changeAccount", (store, tag) => store.changeAccount(tag, { labels: { team: "red" } })],
  ["renameAccount", (store, tag) => store.renameAccount(tag, "renamed")],
  ["createKey", (store, tag) => store.createKey(tag, { id: "key_2", hash: hashOf("two"), group: "big" })],
  ["changeKey", (store, tag) => store.changeKey(tag, "key_1", { name: "n" })],
  ["rotateKey", (store, tag) => store.rotateKey(tag, "key_1", { hash: hashOf("new"), overlapMs: 1_000 })],
  ["revokeKey", (store, tag) => store.revokeKey(tag, "key_1")],
  ["credit", (store, tag) => store.credit(tag, { id: "pay_1", amount: 1n, kind: "topup", note: "" })],
  [
    "grant",
    (store, tag) =>
      store.grant(tag, { ...CARD, id: "gift_1", quota: nanoUsd(5n), reference: "g", afterPrevious: false }),
  ],
  ["createCodes", (store) => store.createCodes(CODE, codesOf(MADE), undefined)],
  ["voidCode", (store) => store.voidCode(VOIDED)],
  ["voidCodes", (store) => store.voidCodes([VOIDED])],
  ["redeem", (store, tag) => store.redeem({ hash: codeHashOf(REDEEMED), tag })],
  ["closeAccount", (store, tag) => store.closeAccount(tag)],
];

test("with a replica that hangs, each write is done and not confirmed", async (t) => {
  const { operators, tag } = await behindAHangingReplica(t);
  const confirmed: string[] = [];
  for (const [name, write] of WRITES) {
    await write(operators, tag).then(
      () => confirmed.push(name),
      (error: unknown) => assert.ok(error instanceof UnconfirmedError, `${name}: ${error}`),
    );
  }
  assert.deepEqual(confirmed, []);
});
