/** A key that is unknown is refused for every model: its refusal names none, although the body was read before. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { newAccountTag, newKey } from "../../../../src/values/key.ts";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { ask, errorOf, PROTOCOL_LIST } from "./asking.ts";

test("a well-formed key that does not exist gets 401 without the name of the model", async (t) => {
  const here = await startGatewayHere();
  t.after(() => here.close());
  for (const protocol of PROTOCOL_LIST) {
    const reply = await ask(here, protocol, newKey(newAccountTag(randomBytes), randomBytes).text);
    assert.equal(reply.status, 401);
    const { cause, message } = await errorOf(reply);
    assert.deepEqual([cause, message], ["unknown_key", "The API key is unknown."]);
  }
});
