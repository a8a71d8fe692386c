/**
 * docs/failure-model.md row 78: if the settlement of a request that nobody answered fails on a defect, the request still
 * ends: it is logged, and no longer in flight. Otherwise it would count against its account until the process ends.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { ask } from "./asking.ts";

test("a defect in the settlement is logged, and the request ends", async (t) => {
  // No amount: whatever computes with it throws.
  const here = await startGatewayHere({ settings: (was) => ({ ...was, leftAllowanceNano: Number.NaN }) });
  t.after(() => here.close());
  const { key } = await here.account();
  here.simulator.program({ fault: { status: 400 } });
  const reply = await ask(here, "chat", key);
  assert.equal(reply.status, 400);
  await reply.arrayBuffer();
  await here.logged((line) => line.msg === "a request failed on a defect of the gateway");
  const line = await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  assert.equal(line.cause, "upstream_rejected");
  const { body } = await here.gateway.metrics.page();
  assert.match(body, /^tollgate_in_flight\{protocol="chat"\} 0$/m);
});
