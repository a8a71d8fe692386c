/**
 * docs/failure-model.md row C4: a reply or an event that would take seconds to parse is refused, and long ones that
 * parse quickly are accepted.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { isCount } from "../../../../src/convert/count.ts";
import { type Exchange, isFault } from "../../../../src/convert/exchange.ts";
import { openPassthrough } from "../../../../src/convert/passthrough/passthrough.ts";
import { outlineOf } from "../../../../src/convert/reply/outline.ts";
import { StreamOrWhole } from "../../../../src/convert/whole-as-stream.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { parseObject } from "../../../../src/values/json-object.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { clientRequest, convertStream, exchangeOf, routeOf, smallBody, sse } from "../translate/rig.ts";

const TOO_MANY = "the reply has too many names or values";

const list = (count: number, one: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => one(at)).join(",");

function answer(message: string, more = ""): Buffer {
  const choice = `{"index":0,"message":{"role":"assistant","content":"a"${message}},"finish_reason":"stop"${more}}`;
  return Buffer.from(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[${choice}]}`);
}

/**
 * The exchange of the smallest request: passed through if client and upstream speak the same protocol, else translated.
 */
function opened(client: Protocol, upstream: Protocol, fields: object = {}): Exchange {
  const body = smallBody(client, { ...fields });
  if (client !== upstream) return exchangeOf(client, body, routeOf(upstream));
  const permitted = { outputLimit: undefined, inputEstimate: 7, strict: false };
  const exchange = openPassthrough(clientRequest(client, body), routeOf(upstream), permitted, {} as never);
  assert.ok(!isRefusal(exchange));
  return exchange;
}

/** The ways in which a whole reply is read. Each returns the reason of the fault, if any. */
const READ = {
  "in its own protocol": (body: Buffer) => reasonOf(opened("chat", "chat").whole(body)),
  translated: (body: Buffer) => reasonOf(opened("messages", "chat").whole(body)),
  "in place of a stream": (body: Buffer) => {
    const stream = new StreamOrWhole("chat", opened("chat", "chat", { stream: true }).stream());
    stream.push(body);
    stream.end();
    return stream.fault?.reason;
  },
};

function reasonOf(reply: object): string | undefined {
  return isFault(reply as never) ? (reply as { reason: string }).reason : undefined;
}

for (const [way, read] of Object.entries(READ)) {
  test(`${way}: a reply of many different names is refused, at any depth`, () => {
    const input = `{${list(60_000, (at) => `"name${at}":0`)}}`;
    assert.equal(read(answer(`,"unheard_of":[${input}]`)), TOO_MANY);
    assert.equal(read(answer(`,"unheard_of":[${list(60_000, (at) => `{"name${at}":0}`)}]`)), TOO_MANY);
  });

  test(`${way}: a reply of more than a million names is refused, even if they are the same`, () => {
    assert.equal(read(answer(`,"unheard_of":[${list(1_200_001, () => '{"a":0}')}]`)), TOO_MANY);
  });
}

for (const [way, read] of Object.entries(READ)) {
  test(`${way}: a reply of more than a million arrays or objects is refused, nested or not`, () => {
    assert.equal(read(answer(`,"unheard_of":[${list(1_200_001, () => "{}")}]`)), TOO_MANY);
    assert.equal(read(answer(`,"unheard_of":${"[".repeat(1_200_001)}${"]".repeat(1_200_001)}`)), TOO_MANY);
  });
}

for (const [way, read] of Object.entries(READ)) {
  test(`${way}: half a million arrays or objects are too many for a reply of the size of an event`, () => {
    assert.equal(read(answer(`,"unheard_of":[${list(500_001, () => "{}")}]`)), TOO_MANY);
    const larger = answer(`,"unheard_of":[${list(500_001, () => "{}")}],"text":"${"x".repeat(4 * 1024 * 1024)}"`);
    assert.notEqual(read(larger), TOO_MANY);
  });

  test(`${way}: a reply of more than four million values is refused`, () => {
    assert.equal(read(answer(`,"unheard_of":[${"0,".repeat(4_000_000)}0]`)), TOO_MANY);
  });
}

test("log probabilities of a long answer, a large input and text that looks like names are accepted", () => {
  const top = list(20, (at) => `{"token":"t${at}","logprob":-${at}.5,"bytes":[116]}`);
  const tokens = list(16_384, (at) => `{"token":"w${at}","logprob":-0.5,"bytes":[119],"top_logprobs":[${top}]}`);
  const probable = answer("", `,"logprobs":{"content":[${tokens}]}`);
  const named = answer(
    `,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":${JSON.stringify(
      `{${list(50_000, (at) => `"name${at}":0`)}}`,
    )}}}]`,
  );
  const wide = answer(`,"unheard_of":{${list(49_000, (at) => `"a longer name of a member, number ${at}":0`)}}`);
  for (const body of [probable, named, wide]) {
    assert.ok(body.length > 512 * 1024 && parseObject(body.toString()));
    for (const [way, read] of Object.entries(READ)) assert.notEqual(read(body), TOO_MANY, way);
    assert.equal(READ["in its own protocol"](body), undefined);
  }
});

test("the fault has the server's count, which is read without parsing the reply", () => {
  const usage = { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 };
  const text = answer(`,"unheard_of":[${list(60_000, (at) => `{"name${at}":0}`)}]`).toString();
  const body = Buffer.from(`${text.slice(0, -1)},"usage":${JSON.stringify(usage)}}`);
  for (const client of ["chat", "messages"] as const) {
    const fault = opened(client, "chat").whole(body);
    assert.ok(isFault(fault) && fault.reason === TOO_MANY && fault.canBeAskedFor);
    assert.deepEqual([fault.usage?.input, fault.usage?.output], [7, 5]);
  }
  const cut = opened("chat", "chat").whole(body.subarray(0, -40));
  assert.ok(isFault(cut) && cut.reason === TOO_MANY && cut.usage === undefined);
});

const BEGUN = {
  chat: [
    {
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta: { content: "said" } }],
    },
  ],
  messages: [
    {
      type: "message_start",
      message: { id: "m", type: "message", role: "assistant", model: "m", content: [], usage: {} },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "said" } },
  ],
  responses: [
    {
      type: "response.created",
      sequence_number: 0,
      response: { id: "r", object: "response", status: "in_progress", output: [] },
    },
    {
      type: "response.output_item.added",
      sequence_number: 1,
      output_index: 0,
      item: { id: "i", type: "message", role: "assistant", content: [] },
    },
    {
      type: "response.output_text.delta",
      sequence_number: 2,
      output_index: 0,
      content_index: 0,
      item_id: "i",
      delta: "said",
    },
  ],
} as const;

/** The events after those. The first of them has the count, and gets the names. */
const ENDING = {
  chat: [
    {
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta: {}, finish_reason: "stop" }],
      usage: { prompt_tokens: 111, completion_tokens: 222, total_tokens: 333 },
    },
    "[DONE]",
  ],
  messages: [
    {
      type: "message_delta",
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { input_tokens: 111, output_tokens: 222 },
    },
    { type: "message_stop" },
  ],
  responses: [
    {
      type: "response.completed",
      sequence_number: 3,
      response: {
        id: "r",
        object: "response",
        status: "completed",
        output: [],
        usage: { input_tokens: 111, output_tokens: 222, total_tokens: 333 },
      },
    },
  ],
} as const;

const named = (event: object, count: number) => {
  const names = list(count, (at) => `"a name of ${at}":0`);
  return `data: ${JSON.stringify(event).slice(0, -1)},"unheard_of":{${names}}}\n\n`;
};

for (const upstream of PROTOCOL_NAMES) {
  for (const client of PROTOCOL_NAMES) {
    const told = (...events: string[]) => {
      const exchange = opened(client, upstream, { stream: true });
      const { text, fault, converter } = convertStream(exchange, [
        Buffer.from(sse(upstream, BEGUN[upstream]) + events.join("")),
      ]);
      const { usage, final } = converter.counts();
      return { text, fault, converter, counted: [usage?.input, usage?.output, final] };
    };
    const ended = (count: number) => {
      const [first, ...rest] = ENDING[upstream];
      return told(named(first, count), sse(upstream, rest));
    };

    test(`${upstream} to ${client}: an event of many different names ends the stream and keeps its count`, () => {
      const few = ended(40_000);
      assert.deepEqual([few.fault, few.counted], [undefined, [111, 222, true]]);
      assert.ok(few.text.includes("said"));
      const many = ended(60_000);
      assert.deepEqual(
        [many.fault?.reason, many.fault?.canBeAskedFor],
        ["an event has too many names or values", true],
      );
      assert.deepEqual(many.counted, few.counted);
      assert.ok(many.text.includes("said") && many.text.includes("error") && !many.text.includes("a name of"));
      assert.deepEqual(many.converter.push(Buffer.from("data: {}\n\n")), [], "nothing is sent after the error");
    });

    test(`${upstream} to ${client}: after such an event in the middle the count is not final`, () => {
      const { [BEGUN[upstream].length - 1]: last } = BEGUN[upstream];
      const { fault, counted } = told(named(last as object, 60_000));
      assert.deepEqual([fault?.reason, counted[2]], ["an event has too many names or values", false]);
    });
  }
}

test("the count of an event is found wherever a server puts it, and an event without a count gives none", () => {
  const found = (event: object | string) =>
    outlineOf(Buffer.from(typeof event === "string" ? event : JSON.stringify(event)));
  const usage = { prompt_tokens: 1 };
  const long = { content: "x".repeat(20_000) };
  assert.deepEqual(found({ choices: [{ index: 1, delta: long, finish_reason: "stop", usage }], more: long }), {
    choices: [{ index: 1, finish_reason: "stop", usage, delta: {} }],
  });
  assert.deepEqual(found({ x_groq: { usage, id: "r" } }), { x_groq: { usage } });
  assert.deepEqual(found({ timings: { predicted_n: 3 } }), { timings: { predicted_n: 3 } });
  assert.deepEqual(found({ type: "response.incomplete", response: { usage, output: [long], status: "incomplete" } }), {
    type: "response.incomplete",
    response: { usage, status: "incomplete" },
  });
  for (const nothing of [
    { choices: [{ index: 0, finish_reason: "stop" }] },
    { usage: null },
    { usage: long },
    "[1]",
    "{",
    "",
  ])
    assert.equal(found(nothing), undefined);
});

test("only as many choices are read as the protocol has", () => {
  const choices = list(129, (at) => `{"index":${at},"finish_reason":"stop"}`);
  const outline = outlineOf(Buffer.from(`{"choices":[${choices}],"usage":{"prompt_tokens":1}}`));
  assert.equal((outline?.choices as readonly object[] | undefined)?.length, 128);
});

test("an event that is cut or broken anywhere is read without an exception", () => {
  const text = JSON.stringify({
    ...ENDING.chat[0],
    x_groq: { usage: {} },
    response: { usage: {} },
    delta: { stop_reason: "x" },
  });
  for (let at = 0; at < text.length; at++) {
    outlineOf(Buffer.from(text.slice(0, at)));
    for (const broken of ["{", "}", "[", "]", ",", ":", '"', "\\", "x"]) {
      outlineOf(Buffer.from(text.slice(0, at) + broken + text.slice(at + 1)));
    }
  }
});

test("a count with many names is ignored", () => {
  const count = (names: number) => Buffer.from(`{"input_tokens":7,"more":{${list(names, (at) => `"name${at}":0`)}}}`);
  assert.deepEqual([isCount(count(40_000)), isCount(count(60_000))], [true, false]);
});
