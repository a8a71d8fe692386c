/** `GET /v1/usage` while a request runs: what it holds can be spent by no other request. */
import assert from "node:assert/strict";
import test from "node:test";
import { parseUsd } from "../../../../src/values/money.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { ask } from "../whole/asking.ts";

test("the available amount is the balance without what running requests hold", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  const { key } = await here.account();
  const amounts = async () => {
    const reply = await fetch(`${here.url}/v1/usage`, { headers: { authorization: `Bearer ${key}` } });
    const { account } = (await reply.json()) as { account: Record<string, string> };
    return ["balance_usd", "held_usd", "available_usd"].map((name) => parseUsd(account[name] ?? "") ?? -1n);
  };
  here.simulator.hold();
  const running = ask(here, "chat", key);
  await here.simulator.waitFor(1);
  const [balance = 0n, held = 0n, available] = await amounts();
  assert.ok(held > 0n && held < balance);
  assert.equal(available, balance - held);
  here.simulator.release();
  const reply = await running;
  await reply.text();
  await here.requestEnd(reply.headers.get("x-request-id") ?? "");
  const [left, nothing, all] = await amounts();
  assert.deepEqual([nothing, all], [0n, left]);
});
