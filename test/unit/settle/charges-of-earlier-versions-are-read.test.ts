// docs/failure-model.md row G2: a journal record without members that later versions added is still a charge, and a record that
// has them is read with them.
import assert from "node:assert/strict";
import test from "node:test";
import { decodeCharge, encode } from "../../../src/settle/journal/payload.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { leftUnpaid, ridOf, settleAsk, tagOf } from "../store/asks.ts";

const ASK: SettleAsk = settleAsk(
  { tag: tagOf("Journal"), requestId: ridOf(1), groups: [] },
  { storeTimeMs: 1_000, group: "big", keyId: "key_1", entitlement: undefined },
  { amount: 40n, upstream: "west" },
);
const NEWER: SettleAsk = {
  ...ASK,
  tokens: { input: 1, cachedInput: 2, cacheWrite: 3, output: 4, reasoning: 5 },
  attempts: [{ upstream: "east", cause: "upstream_timeout", amount: nanoUsd(7n), memo: '{"input":1}' }],
};

const LEFT: SettleAsk = {
  ...ASK,
  amount: nanoUsd(0n),
  voided: true,
  leftUnpaid: leftUnpaid(0n, 9n, { memo: '{"paid":"allowance_used"}' }),
};

const read = (ask: object) => decodeCharge(encode({ ask, orphan: false }))?.ask;

test("a record without tokens by kind and attempts, as 0.1.0 wrote it, is read", () => {
  assert.deepEqual(read(ASK), ASK);
});

test("a record with tokens by kind and attempts is read with both", () => {
  assert.deepEqual(read(NEWER), NEWER);
});

test("a record keeps what a disconnect is charged once the allowance is used up", () => {
  assert.deepEqual(read(LEFT), LEFT);
});

test("attempts, tokens or disconnect charges of a wrong form make the record invalid", () => {
  for (const wrong of [
    { tokens: { input: 1 } },
    { tokens: { ...NEWER.tokens, output: -1 } },
    { tokens: 7 },
    { leftUnpaid: { ...LEFT.leftUnpaid, allowance: undefined } },
    { leftUnpaid: { ...LEFT.leftUnpaid, amount: "nine" } },
    { leftUnpaid: { ...LEFT.leftUnpaid, costs: undefined } },
    { leftUnpaid: { ...LEFT.leftUnpaid, costs: [{ upstream: "east" }] } },
    { leftUnpaid: 7 },
    { attempts: {} },
    { attempts: [{ upstream: "east", cause: "c", memo: "{}" }] },
    { attempts: [{ upstream: "east", cause: "c", memo: "{}", amount: "-1" }] },
  ]) {
    assert.equal(
      read({ ...NEWER, ...wrong }),
      undefined,
      JSON.stringify(wrong, (_, v) => (typeof v === "bigint" ? `${v}` : v)),
    );
  }
});
