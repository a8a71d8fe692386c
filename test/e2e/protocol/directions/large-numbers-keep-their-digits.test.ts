/**
 * docs/translation-rules.md rule 36: numbers that a double cannot hold (ids beyond 2^53, 1e400) keep their digits in
 * tool inputs and schemas, in requests and replies, whole and streamed, in all nine directions.
 */
import assert from "node:assert/strict";
import test, { after, afterEach, before } from "node:test";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { askFor, DIRECTIONS, type Json, post, startGateway } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startGateway({ more: "", strict: false });
});

afterEach(() => here.simulator.clearPrograms());

after(() => here.close());

/** A number as text, for bodies that are written with `JSON.stringify`. */
const { rawJSON: digits } = JSON as unknown as { rawJSON(text: string): unknown };

const BIG = "9007199254740993";
const HUGE = "-123456789012345678901234567890";
const BEYOND = "1e400";
const FINE = "0.12345678901234567891";
const INPUT = { id: digits(BIG), list: [{ deep: digits(HUGE) }, digits(BEYOND)], share: digits(FINE), plain: 0.1 };
const INPUT_TEXT = JSON.stringify(INPUT);

const SCHEMA = {
  type: "object",
  properties: { id: { type: "integer", maximum: digits(HUGE.slice(1)), enum: [digits(BIG), digits(BEYOND)] } },
};

const NUMBERS = [BIG, HUGE, BEYOND, FINE];

/** A turn that called the tool, its result, and the tool with its schema. */
const TOOLS: Readonly<Record<Protocol, Json>> = {
  chat: {
    messages: [
      { role: "user", content: "q" },
      {
        role: "assistant",
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: INPUT_TEXT } }],
      },
      { role: "tool", tool_call_id: "c", content: "r" },
    ],
    tools: [{ type: "function", function: { name: "f", parameters: SCHEMA } }],
  },
  messages: {
    messages: [
      { role: "user", content: "q" },
      { role: "assistant", content: [{ type: "tool_use", id: "c", name: "f", input: INPUT }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "r" }] },
    ],
    tools: [{ name: "f", input_schema: SCHEMA }],
  },
  responses: {
    input: [
      { role: "user", content: "q" },
      { type: "function_call", call_id: "c", name: "f", arguments: INPUT_TEXT },
      { type: "function_call_output", call_id: "c", output: "r" },
    ],
    tools: [{ type: "function", name: "f", strict: false, parameters: SCHEMA }],
  },
};

/** A message as a server writes it; the simulator parses the tool inputs of its own. */
const MESSAGE = {
  id: "m",
  type: "message",
  role: "assistant",
  content: [{ type: "tool_use", id: "c", name: "f", input: INPUT }],
  stop_reason: "tool_use",
  usage: { input_tokens: 1, output_tokens: 5 },
};

/** Text without the escapes of nested JSON, so that a number is as it was written. */
function plain(text: string): string {
  return text.replaceAll("\\", "");
}

function assertDigits(text: string, numbers: readonly string[], where: string): void {
  for (const number of numbers) {
    assert.match(
      plain(text),
      new RegExp(`[:\\[, ]${number.replaceAll(".", "\\.")}[,}\\]]`),
      `${number} in ${where}: ${text}`,
    );
  }
}

for (const direction of DIRECTIONS) {
  const { client, upstream } = direction;

  test(`${client} client, ${upstream} upstream: the request keeps all digits`, async () => {
    const { key } = await here.account();
    const answer = await post(here, client, key, askFor(direction, TOOLS[client]));
    assert.equal(answer.status, 200, await answer.text());
    const sent = here.simulator.requests.at(-1)?.body.toString() ?? "";
    assertDigits(sent, NUMBERS, "the input");
    assertDigits(sent, [HUGE.slice(1), `${BIG},${BEYOND}`], "the schema");
  });

  test(`${client} client, ${upstream} upstream: the reply keeps all digits`, async () => {
    const { key } = await here.account();
    const tools = [{ name: "f", arguments: INPUT }];
    here.simulator.program({ tools, ...(upstream === "messages" && { body: MESSAGE }) }, { times: 2 });
    const whole = await post(here, client, key, askFor(direction));
    assertDigits(await whole.text(), NUMBERS, "the whole reply");
    const stream = await post(here, client, key, askFor(direction, { stream: true }));
    assertDigits(textOfStream(await stream.text()), NUMBERS, "the stream");
  });
}

/** The pieces of the arguments joined; a stream may cut them anywhere. */
function textOfStream(text: string): string {
  let joined = "";
  for (const [, piece] of text.matchAll(/"(?:partial_json|arguments|delta)":"((?:[^"\\]|\\.)*)"/g)) {
    joined += JSON.parse(`"${piece}"`);
  }
  return joined;
}

test("a block that opens with its whole input keeps the digits too", async () => {
  const { key } = await here.account();
  const [block] = MESSAGE.content;
  here.simulator.program({
    frames: [
      { event: "message_start", data: { type: "message_start", message: { id: "m", usage: { input_tokens: 1 } } } },
      { event: "content_block_start", data: { type: "content_block_start", index: 0, content_block: block } },
      { event: "content_block_stop", data: { type: "content_block_stop", index: 0 } },
      {
        event: "message_delta",
        data: { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 5 } },
      },
      { event: "message_stop", data: { type: "message_stop" } },
    ],
  });
  const stream = await post(here, "chat", key, askFor({ client: "chat", upstream: "messages" }, { stream: true }));
  assertDigits(textOfStream(await stream.text()), NUMBERS, "the stream");
});

test("a number elsewhere is parsed as a number: an invalid limit is refused by name", async () => {
  const { key } = await here.account();
  const direction = { client: "chat", upstream: "messages" } as const;
  const answer = await post(here, "chat", key, askFor(direction, { ...TOOLS.chat, top_p: digits(BEYOND) }));
  assert.equal(answer.status, 400);
  assert.match(await answer.text(), /top_p/);
});
