/**
 * docs/failure-model.md invariant 35: a payment that no replica has confirmed may be lost. When it is sent again, the answer
 * that it was counted before is true for this server only, so it waits for a replica too.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { UnconfirmedError } from "../../../src/store/contract.ts";
import { behindAHangingReplica } from "./hanging-replica.ts";

test("with a replica that hangs, a payment that is sent again is not confirmed", async (t) => {
  const { operators, tag } = await behindAHangingReplica(t);
  const pay = () => operators.credit(tag, { id: "pay_1", amount: 7n, kind: "topup", note: "" });
  await assert.rejects(pay, UnconfirmedError);
  await assert.rejects(pay, UnconfirmedError);
});
