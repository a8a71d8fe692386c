/** A model that costs nothing is asked for as much output for an account without funds as for any other. */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { ask } from "../../protocol/whole/asking.ts";
import { limited, limitSent, pricedConfig } from "./rig.ts";

test("a stream without an output limit from a free model is not limited because the account has no funds", async (t) => {
  const price = { input: "0", cached_input: "0", cache_write: "0", output: "0" };
  const here = await startGatewayHere({
    config: (places) => pricedConfig(places, { models: { "chat-1": { price } } }),
  });
  t.after(() => here.close());
  const sent: unknown[] = [];
  for (const usd of ["0", "1"]) {
    const account = await here.account({ usd });
    const reply = await ask(here, "chat", account.key, limited("chat", "chat", undefined, { stream: true }));
    await reply.text();
    assert.deepEqual([reply.status, reply.headers.get("x-tollgate-clamped")], [200, null], usd);
    sent.push(limitSent(here));
  }
  assert.equal(sent[0], sent[1]);
});
