/**
 * docs/failure-model.md invariant 35: whatever an operator writes is answered when a replica has it; with a replica that
 * hangs, the operator hears of each write that it may be lost.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type Store, UnconfirmedError } from "../../../src/store/contract.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { codeHashOf, hashOf, tagOf } from "./asks.ts";
import { behindAHangingReplica, CARD, CODE, codesOf, MADE, REDEEMED, type Tag, VOIDED } from "./hanging-replica.ts";

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
