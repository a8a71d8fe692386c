/**
 * Stateless endpoints and those that the gateway does not offer: 404 in the form of their protocol, never a hang or a
 * 5xx.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import OpenAI from "openai";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";
import { type ErrorShape, errorOf } from "../whole/asking.ts";
import { openaiOf } from "./side-rig.ts";

let here: GatewayHere;
let account: TestAccount;

before(async () => {
  here = await startGatewayHere();
  account = await here.account();
});
after(() => here.close());

function ask(method: string, path: string, key = account.key): Promise<Response> {
  return fetch(here.url + path, { method, headers: { authorization: `Bearer ${key}` } });
}

for (const [method, path] of [
  ["GET", "/v1/responses/resp_abc"],
  ["DELETE", "/v1/responses/resp_abc"],
  ["POST", "/v1/responses/resp_abc/cancel"],
  ["GET", "/v1/responses/resp_abc/input_items"],
  ["GET", "/v1/responses/resp_abc?include[]=x"],
] as const) {
  test(`${method} ${path}: no response is stored, in the wording of the protocol's own server`, async () => {
    const reply = await ask(method, path);
    assert.equal(reply.status, 404);
    assert.equal(reply.headers.get("content-type"), "application/json");
    const { message, type, param, code, cause, remedy } = await errorOf(reply);
    assert.deepEqual(
      { message, type, param, code },
      { message: "Response with id 'resp_abc' not found.", type: "invalid_request_error", param: null, code: null },
    );
    assert.equal(cause, "unknown_path");
    assert.match(remedy, /store: false/);
    const line = await here.requestEnd(reply.headers.get("x-request-id") as string);
    assert.deepEqual([line.protocol, line.endpoint, line.status], ["side", "stored_response", 404]);
  });
}

test("OpenAI's SDK reads it as not found", async () => {
  await assert.rejects(openaiOf(here, account.key).responses.retrieve("resp_abc"), OpenAI.NotFoundError);
});

test("a request without a key is refused for that first", async () => {
  assert.equal((await ask("GET", "/v1/responses/resp_abc", "sk-none")).status, 401);
});

for (const [path, messages] of [
  ["/v1/messages/batches", true],
  ["/v1/files", false],
  ["/v1/embeddings", false],
  ["/v1/completions", false],
] as const) {
  test(`POST ${path} is not offered, in the right form`, async () => {
    const reply = await ask("POST", path);
    assert.equal(reply.status, 404);
    const body = (await reply.json()) as { type?: string; error: ErrorShape };
    assert.equal(body.error.cause, "unknown_path");
    assert.equal(body.error.type, "not_found_error");
    assert.equal(body.type, messages ? "error" : undefined);
    assert.doesNotMatch(body.error.message, /model/i);
  });
}
