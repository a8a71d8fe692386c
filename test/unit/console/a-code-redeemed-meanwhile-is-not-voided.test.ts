// docs/money.md, batches of codes: a void that runs while accounts redeem codes counts each code by its outcome.
import assert from "node:assert/strict";
import { test } from "node:test";
import { card } from "../../e2e/money/cards/rig.ts";
import { codeHashOf, makeAccount } from "../store/asks.ts";
import { startConsole } from "./running-console.ts";
import { holding, openTestStore } from "./test-store.ts";

test("a code that is redeemed between the listing of the batch and its void counts as redeemed", async (t) => {
  const store = await openTestStore(t);
  const codes = Array.from({ length: 3 }, (_, i) => ({ id: `code${i}`, hash: codeHashOf(`code${i}`) }));
  const batch = `batch_${"r".repeat(16)}`;
  await store.createCodes({ ...card(), batch }, codes, { label: "rush", count: codes.length });
  const tag = await makeAccount(store, "alice", { group: "cards" });
  const redeemOne = async () => {
    assert.equal((await store.redeem({ hash: codeHashOf("code1"), tag })).outcome, "redeemed");
  };
  const { ask } = await startConsole(t, { store: holding(store, "listBatchCodes", redeemOne) });
  const { made, redeemed, void: voided, voided_now } = (await ask("POST", `/admin/v1/code-batches/${batch}/void`)).json;
  assert.deepEqual({ made, redeemed, voided, voided_now }, { made: 3, redeemed: 1, voided: 2, voided_now: 2 });
  assert.equal((await store.getCode("code1"))?.state, "redeemed");
});
