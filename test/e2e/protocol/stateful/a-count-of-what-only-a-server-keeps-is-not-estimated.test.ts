/**
 * docs/api.md: a token count of a request that continues a stored response comes from the server that keeps it. If that
 * server cannot count, the request is refused and names model and group: an estimate would leave out the conversation before.
 */
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { startBefore } from "../../../rig/own-upstream.ts";
import { ask, assertAtRest, errorOf } from "../whole/asking.ts";

const STORED = {
  ...{ id: "resp_0123456789abcdef", object: "response", status: "completed", model: "responses-1" },
  usage: { input_tokens: 11, output_tokens: 4, total_tokens: 15 },
  output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "said" }] }],
};

/** A count of a request that continues a response of this server. @param status and body of what it answers to counts. */
async function counted(t: TestContext, status: number, body: object): Promise<Response> {
  const here = await startBefore(t, (request, response) => {
    request.resume();
    const isCount = request.url?.endsWith("/input_tokens") === true;
    response.writeHead(isCount ? status : 200, { "content-type": "application/json" });
    response.end(JSON.stringify(isCount ? body : STORED));
  });
  const account = await here.account();
  const kept = await ask(here, "responses", account.key, { store: true });
  const { id } = (await kept.json()) as { id: string };
  const fields = { max_output_tokens: undefined, previous_response_id: id };
  const reply = await ask(here, "responses", account.key, fields, { path: "/v1/responses/input_tokens" });
  await assertAtRest(here, account);
  return reply;
}

test("the count is the server's", async (t) => {
  const reply = await counted(t, 200, { object: "response.input_tokens", input_tokens: 4_711 });
  assert.equal(reply.status, 200, await reply.clone().text());
  assert.equal(((await reply.json()) as { input_tokens: number }).input_tokens, 4_711);
});

test("a server that cannot count is named as the reason", async (t) => {
  const reply = await counted(t, 404, {});
  const { cause, message } = await errorOf(reply);
  assert.deepEqual([reply.status, cause], [400, "unsupported_parameter"]);
  assert.match(message, /that server cannot count tokens\..* Model: "responses-1"\. Group: "money"\.$/);
});
