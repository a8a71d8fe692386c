/** A hostile upstream causes only bounded memory and linear time (docs/failure-model.md row 68). */
import assert from "node:assert/strict";
import test from "node:test";
import { JSON_DEPTH_MAX } from "../../../../src/convert/reply/depth.ts";
import { REPLY_BLOCKS_MAX, REPLY_KEPT_CHARS_MAX } from "../../../../src/convert/reply/sink.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { decodePayloads, decoderFor, decodeWhole, frameOf, gather, planFor } from "./decoding.ts";

const OPENING: Readonly<Record<Protocol, object>> = {
  chat: { choices: [] },
  messages: { type: "message_start", message: {} },
  responses: { type: "response.created", response: {} },
};

/** The event that begins the nth call. */
const CALL: Readonly<Record<Protocol, (n: number) => object>> = {
  chat: (n) => ({
    choices: [{ delta: { tool_calls: [{ index: n, id: `c${n}`, function: { name: "f", arguments: '{"a' } }] } }],
  }),
  messages: (n) => ({
    ...{ type: "content_block_start", index: n, content_block: { type: "tool_use", id: `c${n}`, name: "f" } },
  }),
  responses: (n) => ({
    type: "response.output_item.added",
    output_index: n,
    item: { type: "function_call", id: `fc${n}`, call_id: `c${n}`, name: "f", arguments: "" },
  }),
};

/** A fragment of call 0. */
const FRAGMENT: Readonly<Record<Protocol, (text: string) => object>> = {
  chat: (text) => ({ choices: [{ delta: { tool_calls: [{ index: 0, function: { arguments: text } }] } }] }),
  messages: (text) => ({
    type: "content_block_delta",
    index: 0,
    delta: { type: "input_json_delta", partial_json: text },
  }),
  responses: (text) => ({
    type: "response.function_call_arguments.delta",
    output_index: 0,
    item_id: "fc0",
    delta: text,
  }),
};

const ENDING: Readonly<Record<Protocol, readonly object[]>> = {
  chat: [{ choices: [{ delta: {}, finish_reason: "stop" }] }],
  messages: [{ type: "message_delta", delta: { stop_reason: "tool_use" } }, { type: "message_stop" }],
  responses: [{ type: "response.completed", response: { status: "completed", output: [] } }],
};

for (const protocol of PROTOCOL_NAMES) {
  const plan = planFor(protocol);

  test(`${protocol}: 100,000 calls end in a fault at the maximum of blocks`, () => {
    const decoder = decoderFor(plan);
    decoder.push(frameOf(JSON.stringify(OPENING[protocol])));
    let calls = 0;
    while (calls < 100_000 && decoder.fault === undefined) {
      decoder.push(frameOf(JSON.stringify(CALL[protocol](calls++))));
    }
    assert.equal(decoder.fault?.cause, "upstream_invalid");
    assert.ok(calls <= REPLY_BLOCKS_MAX + 1, String(calls));
    assert.deepEqual(decoder.push(frameOf(JSON.stringify(CALL[protocol](calls)))), []);
  });

  test(`${protocol}: empty and unknown blocks also count for the maximum`, () => {
    const empty: Readonly<Record<Protocol, (n: number) => object>> = {
      chat: (n) => ({ choices: [{ delta: { tool_calls: [{ index: n }] } }] }),
      messages: (n) => ({ type: "content_block_start", index: n, content_block: { type: "unheard_of" } }),
      responses: (n) => ({ type: "response.output_item.added", output_index: n, item: { type: "unheard_of" } }),
    };
    const payloads = Array.from({ length: REPLY_BLOCKS_MAX + 1 }, (_, n) => empty[protocol](n));
    const { decoder } = decodePayloads([OPENING[protocol], ...payloads, ...ENDING[protocol]], plan);
    assert.equal(decoder.fault?.reason, "the reply has too many blocks");
  });

  test(`${protocol}: names and ids count for the limit on kept text`, () => {
    const decoder = decoderFor(plan);
    decoder.push(frameOf(JSON.stringify(OPENING[protocol])));
    let count = 0;
    while (decoder.fault === undefined && count++ < 100) {
      const call = JSON.stringify(CALL[protocol](count)).replace(`"c${count}"`, `"${"x".repeat(1_000_000)}${count}"`);
      decoder.push(frameOf(call));
    }
    assert.ok(count <= Math.ceil(REPLY_KEPT_CHARS_MAX / 1_000_000), String(count));
    assert.match(decoder.fault?.reason ?? "", /too much/);
  });

  test(`${protocol}: 200,000 fragments that are not JSON take linear time`, () => {
    const decoder = decoderFor(plan);
    const begin = [OPENING[protocol], CALL[protocol](0)];
    const events = begin.flatMap((payload) => decoder.push(frameOf(JSON.stringify(payload))));
    const frame = frameOf(JSON.stringify(FRAGMENT[protocol]("[{x")));
    const startMs = performance.now();
    for (let i = 0; i < 200_000; i++) events.push(...decoder.push(frame));
    for (const payload of ENDING[protocol]) events.push(...decoder.push(frameOf(JSON.stringify(payload))));
    events.push(...decoder.end());
    const [call] = gather(events).items;
    assert.equal(call?.type === "tool-call" && call.input.length >= 600_000, true);
    // A parse or a copy of everything per delta would take minutes.
    assert.ok(performance.now() - startMs < 20_000);
  });

  test(`${protocol}: the arguments that are kept have a limit`, () => {
    const decoder = decoderFor(plan);
    for (const payload of [OPENING[protocol], CALL[protocol](0)]) decoder.push(frameOf(JSON.stringify(payload)));
    const megabyte = frameOf(JSON.stringify(FRAGMENT[protocol]("x".repeat(1_000_000))));
    let count = 0;
    while (decoder.fault === undefined && count++ < 100) decoder.push(megabyte);
    assert.equal(count, Math.ceil(REPLY_KEPT_CHARS_MAX / 1_000_000));
  });

  test(`${protocol}: a whole reply may not have more blocks than a stream`, () => {
    const call = { id: "c", call_id: "c", name: "f", function: { name: "f" }, input: {}, arguments: "" };
    const list = (type: string) => Array.from({ length: REPLY_BLOCKS_MAX + 1 }, () => ({ ...call, type }));
    const bodies: Readonly<Record<Protocol, object>> = {
      chat: { choices: [{ message: { tool_calls: list("function") } }] },
      messages: { content: list("tool_use") },
      responses: { output: list("function_call") },
    };
    const decoded = decodeWhole(bodies[protocol], plan);
    assert.equal("cause" in decoded && decoded.cause, "upstream_invalid");
  });
}

/** JSON that is nested deeper than the runtime can write. */
const abyss = (depth: number) => `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;

test("values nested too deep to be written are refused", () => {
  const deep = abyss(100_000);
  const block = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":${deep}}}`;
  const { decoder } = decodePayloads([OPENING.messages, block], planFor("messages"));
  assert.equal(decoder.fault?.cause, "upstream_invalid");
  const reasoning = `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","content":${deep}}}`;
  const second = decodePayloads([OPENING.responses, reasoning], planFor("responses")).decoder;
  assert.equal(second.fault?.cause, "upstream_invalid");
  const choice = `{"choices":[{"delta":{"content":"x","tool_calls":[{"function":{"name":"f","arguments":${deep}}}]},"logprobs":{"content":[${deep}]}}]}`;
  const { events } = decodePayloads([choice, ...ENDING.chat], planFor("chat"));
  assert.deepEqual(
    gather(events).items.map((item) =>
      item.type === "tool-call" ? item.input : item.type === "text" && item.logprobs,
    ),
    [undefined, "{}"],
  );
});

test("values of the maximum depth are accepted", () => {
  const input = JSON.parse(abyss(JSON_DEPTH_MAX - 1));
  const decoded = decodeWhole({ content: [{ type: "tool_use", id: "c", name: "f", input }] }, planFor("messages"));
  assert.ok("reply" in decoded);
});

test("messages: an input that exceeds the limit at the end of the reply is a fault", () => {
  // The input is kept as it came, and once more as the complete input of the call.
  const input = { a: "x".repeat(REPLY_KEPT_CHARS_MAX * 0.6) };
  const call = {
    type: "content_block_start",
    index: 0,
    content_block: { type: "tool_use", id: "c", name: "f", input },
  };
  const { decoder, events } = decodePayloads([OPENING.messages, call, ...ENDING.messages], planFor("messages"));
  assert.equal(decoder.fault?.cause, "upstream_invalid");
  assert.equal(events.at(-1)?.type, "reply-error");
});
