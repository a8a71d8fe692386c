/** ARCHITECTURE.md promise 11: a 503 names the model as typed, because a report to the operator needs it. */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, errorOf, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { scene } from "./rig.ts";

test("while the store is unreachable, a refusal names the model, unless the body or the key is at fault", async (t) => {
  const s = await scene(t);
  s.proxy.answerWith("LOADING Redis is loading the dataset in memory", 1_000_000);
  for (const protocol of PROTOCOL_LIST) {
    const { message } = await errorOf(await ask(s.here, protocol, s.account.key));
    assert.equal(message, `The gateway's accounts cannot be read right now. Model: "${protocol}-1".`);
  }
  const noBody = await errorOf(await ask(s.here, "chat", s.account.key, {}, { raw: "{" }));
  assert.equal(noBody.message, "The gateway's accounts cannot be read right now.");
  const badKey = await errorOf(await ask(s.here, "chat", `sk-${"a".repeat(48)}`));
  assert.equal(badKey.message, "The API key is unknown.");
});
