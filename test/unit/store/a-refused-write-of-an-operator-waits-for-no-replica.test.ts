/**
 * docs/failure-model.md invariant 35: a replica confirms what was written. A write that the store refuses is answered as
 * refused although the replica hangs: "the change was made" would be false, and wrong codes would not be counted.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Store } from "../../../src/store/contract.ts";
import { KEY_VALUES_MAX } from "../../../src/store/names.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { codeHashOf, hashOf, tagOf } from "./asks.ts";
import { archiveAsk } from "./contract-archive.ts";
import { behindAHangingReplica, CARD, type Tag, VOIDED } from "./hanging-replica.ts";

const NOBODY = tagOf("Nobody");
const GIFT = { ...CARD, id: "gift_1", quota: nanoUsd(5n), reference: "g", afterPrevious: false };

/** Each with the outcome, or the answer itself. */
const REFUSED: readonly (readonly [answer: unknown, write: (store: Store, tag: Tag) => Promise<unknown>])[] = [
  [undefined, (store) => store.setPlan(NOBODY, "pro")],
  [undefined, (store) => store.setAccountLimits(NOBODY, "")],
  [undefined, (store) => store.setNotifyBelow(NOBODY, undefined)],
  [undefined, (store) => store.changeAccount(NOBODY, { status: "suspended" })],
  [undefined, (store) => store.renameAccount(NOBODY, "renamed")],
  [undefined, (store) => store.closeAccount(NOBODY)],
  [undefined, (store) => store.createKey(NOBODY, { id: "key_2", hash: hashOf("two"), group: "big" })],
  [undefined, (store, tag) => store.changeKey(tag, "key_9", { name: "n" })],
  [undefined, (store, tag) => store.rotateKey(tag, "key_9", { hash: hashOf("new"), overlapMs: 1_000 })],
  [undefined, (store, tag) => store.revokeKey(tag, "key_9")],
  [undefined, (store) => store.grant(NOBODY, GIFT)],
  ["unknown_account", (store) => store.credit(NOBODY, { id: "pay_1", amount: 1n, kind: "topup", note: "" })],
  ["refused", (store, tag) => store.credit(tag, { id: "pay_2", amount: -1_000n, kind: "adjust", note: "" })],
  ["unknown_code", (store, tag) => store.redeem({ hash: codeHashOf("no such code"), tag })],
  [undefined, (store, tag) => store.takeSignIn(tag, "link", "used")],
  ["unmet", (store, tag) => store.keepSignIn(tag, { kind: "passkey", id: "gone", data: "{}", only: "known" })],
  ["too_young", async (store, tag) => store.archiveLedger(tag, await archiveAsk(store, tag, 1))],
];

test("with a replica that hangs, a refused write is answered as refused", async (t) => {
  const { operators, tag } = await behindAHangingReplica(t);
  for (const [answer, write] of REFUSED) {
    const given = await write(operators, tag);
    const outcome = typeof given === "object" && given !== null && "outcome" in given ? given.outcome : given;
    assert.equal(outcome, answer, String(write));
  }
});

test("so are the name of another account, the ninth value of a key and a void code, after writes that are not confirmed", async (t) => {
  const { operators, tag } = await behindAHangingReplica(t);
  await assert.rejects(operators.createAccount({ tag: NOBODY, name: "other", plan: "free" }), /no replica/);
  assert.equal(await operators.renameAccount(tag, "other"), "taken");
  const rotated = (n: number) => operators.rotateKey(tag, "key_1", { hash: hashOf(`value ${n}`), overlapMs: 60_000 });
  for (let n = 1; n < KEY_VALUES_MAX; n++) await assert.rejects(rotated(n), /no replica/);
  assert.equal(await rotated(KEY_VALUES_MAX), "too_many");
  await assert.rejects(operators.voidCode(VOIDED), /no replica/);
  assert.deepEqual(await operators.redeem({ hash: codeHashOf(VOIDED), tag }), { outcome: "void" });
});
