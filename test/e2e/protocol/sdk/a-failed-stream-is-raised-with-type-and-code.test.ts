/**
 * docs/errors.md, *When a stream fails*: what the official SDKs raise says who is at fault, in the names that they give
 * to errors before a stream, and which request it was.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { type GatewayHere, startGatewayHere } from "../../../rig/gateway.ts";

let here: GatewayHere;
before(async () => {
  here = await startGatewayHere();
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const USER = { role: "user", content: "hello" } as const;
const TOO_LONG = "This model's maximum context length is 8192 tokens. However, your messages resulted in 10000 tokens.";

/** The error of the upstream's stream, and the type and code that a client of OpenAI's SDK, or Anthropic's, reads. */
const CASES = [
  [{ type: "api_error", code: "server_error", message: "x" }, "server_error", "server_error", "overloaded_error"],
  [
    { type: "rate_limit_error", code: "rate_limit_exceeded", message: "x" },
    "rate_limit_error",
    "rate_limit_exceeded",
    "overloaded_error",
  ],
  [
    { type: "invalid_request_error", code: "context_length_exceeded", message: TOO_LONG },
    "invalid_request_error",
    "context_length_exceeded",
    "invalid_request_error",
  ],
] as const;

type Raised = {
  readonly type?: unknown;
  readonly code?: unknown;
  readonly requestID?: unknown;
  readonly error?: unknown;
};

async function raised(stream: Promise<AsyncIterable<unknown>>): Promise<Raised> {
  try {
    for await (const _ of await stream);
  } catch (error) {
    assert.ok(error instanceof OpenAI.APIError || error instanceof Anthropic.APIError, String(error));
    assert.match(String(error.requestID), /^req_[0-9A-Za-z]{24}$/);
    return error;
  }
  return assert.fail("the stream did not fail");
}

for (const [fault, type, code, messagesType] of CASES) {
  const prepare = async () => {
    here.simulator.program({ text: "a few words ".repeat(20), fault: { errorEventAfter: { n: 9, ...fault } } });
    return (await here.account()).key;
  };

  test(`chat: ${fault.code}`, async () => {
    const client = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: await prepare(), maxRetries: 0 });
    const error = await raised(client.chat.completions.create({ model: "chat-1", messages: [USER], stream: true }));
    assert.deepEqual([error.type, error.code], [type, code]);
  });

  test(`responses: ${fault.code}`, async () => {
    const client = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: await prepare(), maxRetries: 0 });
    const error = await raised(client.responses.create({ model: "responses-1", input: "hello", stream: true }));
    assert.deepEqual([error.type, error.code], [type, code]);
    const { cause, remedy, request_id } = error.error as Record<string, unknown>;
    assert.ok([cause, remedy].every((one) => typeof one === "string"));
    assert.equal(request_id, error.requestID);
  });

  test(`messages: ${fault.code}`, async () => {
    const client = new Anthropic({ baseURL: here.url, apiKey: await prepare(), maxRetries: 0 });
    const body = { model: "messages-1", max_tokens: 400, messages: [USER] };
    assert.equal((await raised(client.messages.create({ ...body, stream: true }))).type, messagesType);
  });
}
