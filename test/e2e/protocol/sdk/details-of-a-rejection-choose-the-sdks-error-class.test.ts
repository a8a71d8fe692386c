/**
 * docs/translation-rules.md rule 47: Anthropic's SDK chooses the class of an error by the `error_code` in the `details`
 * of a messages server's error, and gives the program its other members.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Fault } from "../../../../src/simulator/server.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { modelOn, startGateway } from "../directions/rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startGateway({ more: "", strict: false });
});
afterEach(() => here.simulator.clearPrograms());
after(() => here.close());

const USER = { role: "user", content: "hello" } as const;
const DETAILS = { error_code: "tool_name_conflict", max_side_length_pixels: 8000, paths: ["messages.0.content.1"] };
const refusing = (details: object): Fault => ({
  status: 400,
  body: { type: "error", error: { type: "invalid_request_error", message: "Two tools have one name.", details } },
});

async function refusal(call: (key: string) => Promise<unknown>, fault: Fault): Promise<unknown> {
  const { key } = await here.account();
  here.simulator.program({ fault }, { times: Infinity });
  return call(key).then(
    () => assert.fail("the request was not refused"),
    (reason: unknown) => reason,
  );
}

const messagesTo = (upstream: "chat" | "messages", stream: boolean) => (apiKey: string) =>
  new Anthropic({ baseURL: here.url, apiKey, maxRetries: 0 }).messages.create({
    model: modelOn(upstream),
    max_tokens: 500,
    messages: [USER],
    stream,
  });

for (const stream of [false, true]) {
  test(`a messages server's details reach Anthropic's SDK${stream ? ", streamed" : ""}`, async () => {
    const error = await refusal(messagesTo("messages", stream), refusing({ ...DETAILS, account: "org-AbC123xyz" }));
    assert.ok(error instanceof Anthropic.ToolNameConflictError, String(error));
    assert.deepEqual([error.status, error.errorCode, error.details], [400, DETAILS.error_code, DETAILS]);
  });
}

test("images that are too large are named to Anthropic's SDK by their places, and to OpenAI's by the code", async () => {
  const details = { error_code: "image_dimensions_too_large", max_side_length_pixels: 8000, paths: DETAILS.paths };
  const error = await refusal(messagesTo("messages", false), refusing(details));
  assert.ok(error instanceof Anthropic.ImageDimensionsTooLargeError, String(error));
  assert.deepEqual(error.details, details);
  const ask = (apiKey: string) =>
    new OpenAI({ baseURL: `${here.url}/v1`, apiKey, maxRetries: 0 }).responses.create({
      model: modelOn("messages"),
      input: "hello",
    });
  const other = await refusal(ask, refusing(details));
  assert.ok(other instanceof OpenAI.BadRequestError, String(other));
  assert.equal(other.code, details.error_code);
});

test("changes of tools that do not fit raise the SDK's own errors on every route", async () => {
  for (const upstream of ["chat", "responses"] as const) {
    const { key } = await here.account();
    const sdk = new Anthropic({ baseURL: here.url, apiKey: key, maxRetries: 0 });
    const changed = (tool: Anthropic.Beta.BetaRequestToolAdditionBlock["tool"]) =>
      sdk.beta.messages
        .create({
          model: modelOn(upstream),
          max_tokens: 500,
          tools: [{ name: "bash", input_schema: { type: "object" } }],
          messages: [USER, { role: "system", content: [{ type: "tool_addition", tool }] }],
        })
        .then(
          () => assert.fail("not refused"),
          (reason: unknown) => reason,
        );
    const unknown = await changed({ type: "tool_reference", name: "climb" });
    assert.ok(unknown instanceof Anthropic.ToolReferenceUnresolvedError, String(unknown));
    const taken = await changed({ type: "tool_definition", definition: { type: "bash_20250124", name: "bash" } });
    assert.ok(taken instanceof Anthropic.ToolNameConflictError, String(taken));
  }
});

test("details in the first event of a stream reach Anthropic's SDK", async () => {
  const { body } = refusing(DETAILS);
  const { key } = await here.account();
  here.simulator.program({ frames: [{ event: "error", data: body }] }, { times: Infinity });
  const error = await messagesTo(
    "messages",
    true,
  )(key).then(
    () => assert.fail("not refused"),
    (reason) => reason,
  );
  assert.ok(error instanceof Anthropic.ToolNameConflictError, String(error));
  assert.deepEqual(error.details, DETAILS);
});

test("a chat client gets the code of a messages server's details", async () => {
  const call = (apiKey: string) =>
    new OpenAI({ baseURL: `${here.url}/v1`, apiKey, maxRetries: 0 }).chat.completions.create({
      model: modelOn("messages"),
      messages: [USER],
    });
  const error = await refusal(call, refusing(DETAILS));
  assert.ok(error instanceof OpenAI.BadRequestError, String(error));
  assert.deepEqual([error.code, error.param, "details" in (error.error as object)], [DETAILS.error_code, null, false]);
});

test("details that a chat server writes mean nothing to a messages client", async () => {
  const error = await refusal(messagesTo("chat", false), {
    status: 400,
    body: { error: { message: "No.", code: "string_above_max_length", details: DETAILS } },
  });
  assert.ok(error instanceof Anthropic.BadRequestError, String(error));
  assert.equal(error.details, null);
});
