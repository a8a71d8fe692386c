/**
 * Clients of all three protocols get one proper answer from servers that follow their protocol loosely, also on routes
 * of the same protocol: a stream with the content type of plain text, one JSON object instead of a stream, a responses
 * stream that begins with its first item, an empty `finish_reason` in every chunk. The official SDKs are the judges.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Behavior } from "../../../../src/simulator/behavior.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { usageLines } from "../whole/asking.ts";
import { DIRECTIONS, type Json, modelOn, startGateway } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startGateway({ more: "", strict: false });
});

afterEach(() => here.simulator.clearPrograms());

after(() => here.close());

const TEXT = "It rains in Oslo, as 👋 ever.";
const INPUT = { city: "Oslo" };

/** Whole replies as the protocols write them. */
const WHOLE: Readonly<Record<Protocol, Json>> = {
  chat: {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "m",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: TEXT,
          reasoning_content: "hm",
          tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: JSON.stringify(INPUT) } }],
        },
        logprobs: null,
        finish_reason: "tool_calls",
      },
    ],
    usage: { prompt_tokens: 11, completion_tokens: 13, total_tokens: 24 },
  },
  messages: {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "m",
    content: [
      { type: "thinking", thinking: "hm", signature: "sig=" },
      { type: "text", text: TEXT },
      { type: "tool_use", id: "c1", name: "f", input: INPUT },
    ],
    stop_reason: "tool_use",
    stop_sequence: null,
    usage: { input_tokens: 11, output_tokens: 13 },
  },
  responses: {
    id: "resp_1",
    object: "response",
    created_at: 1,
    model: "m",
    status: "completed",
    error: null,
    output: [
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hm" }] },
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: TEXT, annotations: [] }],
      },
      {
        type: "function_call",
        id: "fc_1",
        call_id: "c1",
        name: "f",
        arguments: JSON.stringify(INPUT),
        status: "completed",
      },
    ],
    usage: { input_tokens: 11, output_tokens: 13, total_tokens: 24 },
  },
};

/** The last answer's request id. */
let requestId = "";

async function noting(...args: Parameters<typeof fetch>): Promise<Response> {
  const answer = await fetch(...args);
  requestId = answer.headers.get("x-request-id") ?? "";
  return answer;
}

/** What a client has received of an answer in the end, and the pieces of text as they came. */
interface Heard {
  readonly text: string;
  readonly streamed: string;
  readonly calls: readonly string[];
  readonly stop: string | null | undefined;
}

const HEAR: Readonly<Record<Protocol, (apiKey: string, model: string) => Promise<Heard>>> = {
  async chat(apiKey, model) {
    const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey, maxRetries: 0, fetch: noting });
    let streamed = "";
    const stream = sdk.chat.completions.stream({ model, messages: [{ role: "user", content: "q" }] });
    stream.on("content", (delta) => {
      streamed += delta;
    });
    const [choice] = (await stream.finalChatCompletion()).choices;
    const calls = (choice?.message.tool_calls ?? []).map((call) =>
      call.type === "function" ? call.function.arguments : "",
    );
    return { text: choice?.message.content ?? "", streamed, calls, stop: choice?.finish_reason };
  },
  async messages(apiKey, model) {
    const sdk = new Anthropic({ baseURL: here.url, apiKey, maxRetries: 0, fetch: noting });
    let streamed = "";
    const stream = sdk.messages.stream({ model, max_tokens: 900, messages: [{ role: "user", content: "q" }] });
    stream.on("text", (delta) => {
      streamed += delta;
    });
    const { content, stop_reason } = await stream.finalMessage();
    const text = content.map((block) => (block.type === "text" ? block.text : "")).join("");
    const calls = content.flatMap((block) => (block.type === "tool_use" ? [JSON.stringify(block.input)] : []));
    return { text, streamed, calls, stop: stop_reason };
  },
  async responses(apiKey, model) {
    const sdk = new OpenAI({ baseURL: `${here.url}/v1`, apiKey, maxRetries: 0, fetch: noting });
    let streamed = "";
    const ids = new Set<string>();
    const stream = sdk.responses.stream({ model, input: "q" });
    stream.on("event", (event) => {
      if (event.type === "response.output_text.delta") streamed += event.delta;
      if ("response" in event) ids.add(event.response.id);
    });
    const { output, status } = await stream.finalResponse();
    assert.equal(ids.size, 1, `one response has the ids ${[...ids].join()}`);
    const parts = output.flatMap((item) => (item.type === "message" ? item.content : []));
    const text = parts.map((part) => (part.type === "output_text" ? part.text : "")).join("");
    const calls = output.flatMap((item) => (item.type === "function_call" ? [item.arguments] : []));
    return { text, streamed, calls, stop: status };
  },
};

const STOPS = {
  calls: { chat: "tool_calls", messages: "tool_use", responses: "completed" },
  text: { chat: "stop", messages: "end_turn", responses: "completed" },
} as const;

async function check(client: Protocol, upstream: Protocol, behavior: Behavior, withCalls: boolean): Promise<void> {
  const account = await here.account();
  here.simulator.program(behavior);
  const heard = await HEAR[client](account.key, modelOn(upstream));
  const calls = withCalls ? [JSON.stringify(INPUT)] : [];
  assert.deepEqual(heard, { text: TEXT, streamed: TEXT, calls, stop: STOPS[withCalls ? "calls" : "text"][client] });
  await here.requestEnd(requestId);
  const lines = await usageLines(here, account);
  assert.deepEqual(
    lines.map(({ memo }) => (JSON.parse(memo) as Json).ended),
    ["complete"],
  );
}

for (const { client, upstream } of DIRECTIONS) {
  const where = `${client} client, ${upstream} upstream`;

  test(`${where}: a stream with content type text/plain`, () =>
    check(client, upstream, { text: TEXT, fault: { wrongContentType: "text/plain; charset=utf-8" } }, false));

  test(`${where}: one JSON object instead of a stream`, () =>
    check(client, upstream, { fault: { status: 200, body: WHOLE[upstream] } }, true));

  test(`${where}: an error in a JSON object instead of a stream is an error`, async () => {
    const { key } = await here.account();
    const body = { type: "error", error: { type: "invalid_request_error", code: "invalid_prompt", message: "no" } };
    here.simulator.program({ fault: { status: 200, body } }, { times: Number.POSITIVE_INFINITY });
    await assert.rejects(HEAR[client](key, modelOn(upstream)), (error: { status?: number }) => error.status === 400);
  });
}

for (const { client, upstream } of DIRECTIONS) {
  if (upstream !== "responses") continue;
  for (const numbered of [true, false]) {
    test(`${client} client: a responses stream that begins with its first item, numbered: ${numbered}`, () => {
      const place = { item_id: "msg_1", output_index: 0 };
      const item = { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] };
      const part = { type: "output_text", text: "", annotations: [] };
      const whole = [{ ...part, text: TEXT }];
      const events: Json[] = [
        { type: "response.output_item.added", output_index: 0, item },
        { type: "response.content_part.added", ...place, content_index: 0, part },
        ...["It rains in Oslo, ", "as 👋 ever."].map((delta) => {
          return { type: "response.output_text.delta", ...place, content_index: 0, delta };
        }),
        { type: "response.output_item.done", output_index: 0, item: { ...item, status: "completed", content: whole } },
        {
          type: "response.completed",
          response: { ...WHOLE.responses, output: [{ ...item, status: "completed", content: whole }] },
        },
      ];
      const frames = events.map((event, number) => ({
        event: String(event.type),
        data: numbered ? { sequence_number: number, ...event } : event,
      }));
      return check(client, upstream, { frames }, false);
    });
  }
}

for (const { client, upstream } of DIRECTIONS) {
  if (upstream !== "chat") continue;
  test(`${client} client: an empty finish_reason in every chunk is ignored`, () => {
    const chunk = (delta: Json, finish_reason: string) => ({
      data: { id: "x", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] },
    });
    const usage = { prompt_tokens: 11, completion_tokens: 13, total_tokens: 24 };
    const frames = [
      chunk({ role: "assistant", content: "It rains in Oslo, " }, ""),
      chunk({ content: "as 👋 ever." }, ""),
      chunk({ content: "" }, "stop"),
      { data: { id: "x", created: 1, model: "m", choices: [], usage } },
      { data: "[DONE]" },
    ];
    return check(client, upstream, { frames }, false);
  });
}
