/**
 * docs/translation-rules.md rule 3: `parse()` and `stream()` of OpenAI's SDK add what they have read of a reply to it
 * (`parsed`, `parsed_arguments`). Programs send it back like that; nothing is lost without it, so a strict request passes.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import OpenAI from "openai";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { CROSS_DIRECTIONS, modelOn, seenBody, startDirections } from "../directions/rig.ts";

let here: GatewayHere;
before(async () => {
  here = await startDirections();
});
after(() => here.close());

const NAME = { name: "Ann" };
const SCHEMA = {
  type: "object",
  properties: { name: { type: "string" } },
  required: ["name"],
  additionalProperties: false,
};
const FORMAT = { type: "json_schema", name: "person", schema: SCHEMA, strict: true } as const;
const USER = { role: "user", content: "hello" } as const;

/** Asks for a call and a text that the SDK parses, and sends both back; `strict` is the header of the second request. */
type Loop = (sdk: OpenAI, model: string, stream: boolean, strict: Record<string, string>) => Promise<unknown>;

const LOOPS: Readonly<Record<"chat" | "responses", Loop>> = {
  async chat(sdk, model, stream, headers) {
    const { type, ...json_schema } = FORMAT;
    const tools = [{ type: "function" as const, function: { name: "find", parameters: SCHEMA, strict: true } }];
    const ask = { model, messages: [USER], tools, response_format: { type, json_schema } };
    const { choices } = await (stream
      ? sdk.chat.completions.stream(ask).finalChatCompletion()
      : sdk.chat.completions.parse(ask));
    const message = choices[0]?.message;
    const call = message?.tool_calls?.[0];
    assert.ok(call?.type === "function");
    assert.deepEqual([message?.parsed, call.function.parsed_arguments], [NAME, NAME]);
    const result = { role: "tool" as const, tool_call_id: call.id, content: "found" };
    const messages = [USER, message as OpenAI.ChatCompletionMessageParam, result];
    return sdk.chat.completions.create({ model, messages }, { headers });
  },
  async responses(sdk, model, stream, headers) {
    const tools = [{ type: "function" as const, name: "find", parameters: SCHEMA, strict: true }];
    const ask = { model, input: [USER], tools, text: { format: FORMAT }, store: false };
    const { output } = await (stream ? sdk.responses.stream(ask).finalResponse() : sdk.responses.parse(ask));
    const call = output.find((item) => item.type === "function_call");
    assert.deepEqual(call?.parsed_arguments, NAME);
    const result = { type: "function_call_output" as const, call_id: call?.call_id ?? "", output: "found" };
    const input = [USER, ...output, result] as OpenAI.Responses.ResponseInput;
    return sdk.responses.create({ model, input, store: false }, { headers });
  },
};

for (const { client, upstream } of CROSS_DIRECTIONS) {
  if (client === "messages") continue;
  for (const stream of [false, true]) {
    test(`${client} client, ${upstream} upstream${stream ? ", streamed" : ""}`, async () => {
      const { key: apiKey } = await here.account();
      here.simulator.program({ text: JSON.stringify(NAME), tools: [{ name: "find", arguments: NAME }] });
      here.simulator.program({ text: "done" });
      const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey, maxRetries: 0 });
      await LOOPS[client](sdk, modelOn(upstream), stream, { "x-tollgate-strict": "1" });
      assert.doesNotMatch(JSON.stringify(seenBody(here.simulator.requests.at(-1))), /parsed/);
    });
  }
}
