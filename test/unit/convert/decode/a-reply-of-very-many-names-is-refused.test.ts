/** docs/failure-model.md row C4: a reply or an event that would take seconds to parse is no answer; long ones of other kinds are. */
import assert from "node:assert/strict";
import test from "node:test";
import { isCount } from "../../../../src/convert/count.ts";
import { type Exchange, isFault } from "../../../../src/convert/exchange.ts";
import { openPassthrough } from "../../../../src/convert/passthrough/passthrough.ts";
import { StreamOrWhole } from "../../../../src/convert/whole-as-stream.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { parseObject } from "../../../../src/values/json-object.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { clientRequest, exchangeOf, routeOf, smallBody, sse, tell } from "../translate/rig.ts";

const TOO_MANY = "the reply has too many names";

const list = (count: number, one: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => one(at)).join(",");

function answer(message: string, more = ""): Buffer {
  const choice = `{"index":0,"message":{"role":"assistant","content":"a"${message}},"finish_reason":"stop"${more}}`;
  return Buffer.from(`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[${choice}]}`);
}

/** The smallest request: passed on where client and upstream speak the same protocol, else translated. */
function opened(client: Protocol, upstream: Protocol, fields: object = {}): Exchange {
  const body = smallBody(client, { ...fields });
  if (client !== upstream) return exchangeOf(client, body, routeOf(upstream));
  const permitted = { outputLimit: undefined, inputEstimate: 7, strict: false };
  const exchange = openPassthrough(clientRequest(client, body), routeOf(upstream), permitted, {} as never);
  assert.ok(!isRefusal(exchange));
  return exchange;
}

/** Each way in which a whole reply is read, and the fault that it ends in. */
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
  test(`${way}: a reply of many different names is refused, also below the top`, () => {
    const input = `{${list(60_000, (at) => `"name${at}":0`)}}`;
    assert.equal(read(answer(`,"unheard_of":[${input}]`)), TOO_MANY);
    assert.equal(read(answer(`,"unheard_of":[${list(60_000, (at) => `{"name${at}":0}`)}]`)), TOO_MANY);
  });

  test(`${way}: a reply of more than a million names is refused, though they are the same`, () => {
    assert.equal(read(answer(`,"unheard_of":[${list(1_200_001, () => '{"a":0}')}]`)), TOO_MANY);
  });
}

test("the probabilities of a long answer, a large input and a text like names are read", () => {
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

test("its fault has the count of its server, which need not be parsed with the rest", () => {
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

for (const upstream of PROTOCOL_NAMES) {
  for (const client of PROTOCOL_NAMES) {
    test(`${upstream} to ${client}: an event of many different names ends the stream, and those of few do not`, () => {
      const begun = sse(upstream, BEGUN[upstream]);
      const fresh = () => opened(client, upstream, { stream: true });
      const events = (count: number) => {
        const names = list(count, (at) => `"a name of ${at}":0`);
        const { [BEGUN[upstream].length - 1]: last } = BEGUN[upstream];
        return Buffer.from(`${begun}data: ${JSON.stringify(last).slice(0, -1)},"unheard_of":{${names}}}\n\n`);
      };
      const many = tell(fresh(), [events(60_000)]);
      assert.deepEqual([many.fault?.reason, many.fault?.canBeAskedFor], ["an event has too many names", true]);
      assert.ok(many.text.includes("said") && !many.text.includes("a name of"));
      assert.deepEqual(many.converter.push(Buffer.from(begun)), [], "nothing comes after it");
      assert.notEqual(tell(fresh(), [events(40_000)]).fault?.reason, many.fault?.reason);
    });
  }
}

test("a count of many names is none", () => {
  const count = (names: number) => Buffer.from(`{"input_tokens":7,"more":{${list(names, (at) => `"name${at}":0`)}}}`);
  assert.deepEqual([isCount(count(40_000)), isCount(count(60_000))], [true, false]);
});
