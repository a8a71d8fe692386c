/**
 * ARCHITECTURE.md promise 14 and docs/translation-rules.md rule 33: a hosted tool without a price is refused where it
 * could run, else left out and named.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
after(() => here.close());

/** Tools as Codex offers them in every request. */
const TOOLS = [
  { type: "function", name: "shell", parameters: { type: "object", properties: {} }, strict: false },
  { type: "web_search", external_web_access: false },
];

async function ask(model: string): Promise<Response> {
  const { key } = await here.account();
  return fetch(`${here.url}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, input: "hi", tools: TOOLS, max_output_tokens: 50 }),
  });
}

test("on a route that could run it: 400 names the tools, and nothing goes upstream", async () => {
  const before = here.simulator.count;
  const reply = await ask("responses-1");
  assert.equal(reply.status, 400);
  const { error } = (await reply.json()) as { error: { cause: string; param: string } };
  assert.deepEqual([error.cause, error.param], ["unsupported_parameter", "tools"]);
  assert.equal(here.simulator.count, before);
});

for (const model of ["chat-1", "messages-1"]) {
  test(`on ${model}, whose server never gets it: 200, and the loss is named`, async () => {
    const reply = await ask(model);
    assert.equal(reply.status, 200, await reply.clone().text());
    assert.equal(reply.headers.get("x-tollgate-translation"), "lossy; dropped=tools.web_search");
    assert.ok(!here.simulator.requests.at(-1)?.body.toString().includes("web_search"));
  });
}
