/** A whole gateway between the official SDKs and an upstream of another protocol, streamed and whole. */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { PROTOCOL_NAMES, PROTOCOLS, type Protocol } from "../../../../src/values/protocol.ts";
import { type GatewayHere, startGatewayHere, type TestAccount } from "../../../rig/gateway.ts";

let here: GatewayHere;
let account: TestAccount;

before(async () => {
  here = await startGatewayHere({ simulator: { strict: true } });
  account = await here.account();
});

after(() => here.close());

const ASK = 'simulate: {"text":"Hello there.","tools":[{"name":"f","arguments":{"city":"Ulm"}}]}';
const SCHEMA = { type: "object" as const, properties: { city: { type: "string" } } };

interface Said {
  readonly text: string | null;
  readonly calls: readonly (readonly [string, unknown])[];
  readonly model: string;
}

const CLIENTS: Readonly<Record<Protocol, (model: string, stream: boolean) => Promise<Said>>> = {
  async chat(model, stream) {
    const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
    const tools = [{ type: "function" as const, function: { name: "f", parameters: SCHEMA } }];
    const ask = { model, tools, messages: [{ role: "user" as const, content: ASK }] };
    const final = stream
      ? await sdk.chat.completions.stream(ask).finalChatCompletion()
      : await sdk.chat.completions.create(ask);
    const { content, tool_calls } = final.choices[0]?.message ?? {};
    const calls = (tool_calls ?? []).map((call) => {
      assert(call.type === "function");
      return [call.function.name, JSON.parse(call.function.arguments)] as const;
    });
    return { text: content ?? null, calls, model: final.model };
  },
  async messages(model, stream) {
    const sdk = new Anthropic({ baseURL: here.url, apiKey: account.key, maxRetries: 0 });
    const tools = [{ name: "f", input_schema: SCHEMA }];
    const ask = { model, max_tokens: 500, tools, messages: [{ role: "user" as const, content: ASK }] };
    const final = stream ? await sdk.messages.stream(ask).finalMessage() : await sdk.messages.create(ask);
    const text = final.content.map((block) => (block.type === "text" ? block.text : "")).join("");
    const calls = final.content.flatMap((block) =>
      block.type === "tool_use" ? [[block.name, block.input] as const] : [],
    );
    return { text, calls, model: final.model };
  },
  async responses(model, stream) {
    const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey: account.key, maxRetries: 0 });
    const tools = [{ type: "function" as const, name: "f", parameters: SCHEMA, strict: false }];
    const ask = { model, tools, input: ASK };
    const final = stream ? await sdk.responses.stream(ask).finalResponse() : await sdk.responses.create(ask);
    const calls = final.output.flatMap((item) =>
      item.type === "function_call" ? [[item.name, JSON.parse(item.arguments)] as const] : [],
    );
    return { text: final.output_text, calls, model: String(final.model) };
  },
};

for (const client of PROTOCOL_NAMES) {
  for (const upstream of PROTOCOL_NAMES.filter((name) => name !== client)) {
    for (const stream of [false, true]) {
      test(`${client} client, ${upstream} upstream, ${stream ? "streamed" : "whole"}: text and calls arrive`, async () => {
        const model = `${upstream}-1`;
        const said = await CLIENTS[client](model, stream);
        assert.deepEqual(said, { text: "Hello there.", calls: [["f", { city: "Ulm" }]], model });
      });
    }
  }
}

test("what was left out is named in a header, and a strict request is refused instead", async () => {
  const ask = (headers: Record<string, string>) =>
    fetch(here.url + PROTOCOLS.chat.path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${account.key}`, ...headers },
      body: JSON.stringify({ model: "messages-1", seed: 7, messages: [{ role: "user", content: "hello" }] }),
    });
  const lossy = await ask({});
  assert.deepEqual([lossy.status, lossy.headers.get("x-tollgate-translation")], [200, "lossy; dropped=seed"]);
  await lossy.text();
  const strict = await ask({ "x-tollgate-strict": "1" });
  assert.equal(strict.status, 400);
  assert.equal(((await strict.json()) as { error: { param: string } }).error.param, "seed");
});

test("if the first event of an upstream is an error, the client gets an error response, not a stream", async () => {
  const fault = '{"fault":{"errorEventAfter":{"n":0,"type":"overloaded_error"}}}';
  const reply = await fetch(here.url + PROTOCOLS.chat.path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${account.key}` },
    body: JSON.stringify({
      model: "messages-1",
      stream: true,
      messages: [{ role: "user", content: `simulate: ${fault}` }],
    }),
  });
  assert.deepEqual([reply.status, reply.headers.get("x-should-retry")], [403, "true"]);
  assert.equal(((await reply.json()) as { error: { type: string } }).error.type, "permission_error");
});
