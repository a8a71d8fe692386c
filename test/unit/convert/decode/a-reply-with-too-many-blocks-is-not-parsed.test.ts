/**
 * docs/failure-model.md row C4: parsing half a million blocks takes as long as parsing as many names, and no real
 * server sends a fraction of them.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type Exchange, isFault } from "../../../../src/convert/exchange.ts";
import { openPassthrough } from "../../../../src/convert/passthrough/passthrough.ts";
import { parseReply } from "../../../../src/convert/reply/parse.ts";
import { REPLY_BLOCKS_MAX, REPLY_BLOCKS_PASSED_MAX } from "../../../../src/convert/reply/sink.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { parseObject } from "../../../../src/values/json-object.ts";
import { PROTOCOL_NAMES, type Protocol } from "../../../../src/values/protocol.ts";
import { clientRequest, exchangeOf, routeOf, smallBody } from "../translate/rig.ts";

const TOO_MANY = "the reply has too many blocks";
/** Makes a reply of a few thousand blocks long enough to be checked before it is parsed. */
const TEXT = "said ".repeat(16);

/** A reply with the given number of blocks, each of which reaches a client. */
const REPLIES: Readonly<Record<Protocol, (count: number) => object>> = {
  chat: (count) => ({
    ...{ id: "c", object: "chat.completion", created: 1, model: "m" },
    choices: Array.from({ length: count }, (_, index) => ({
      ...{ index, finish_reason: "stop", message: { role: "assistant", content: TEXT } },
    })),
    usage: { prompt_tokens: 7, completion_tokens: 5, total_tokens: 12 },
  }),
  messages: (count) => ({
    ...{ id: "m", type: "message", role: "assistant", model: "m", stop_reason: "end_turn" },
    content: Array(count).fill({ type: "text", text: TEXT }),
    usage: { input_tokens: 7, output_tokens: 5 },
  }),
  responses: (count) => ({
    ...{ id: "r", object: "response", created_at: 1, model: "m", status: "completed" },
    output: Array.from({ length: count }, (_, at) => ({
      ...{ id: `msg_${at}`, type: "message", role: "assistant", status: "completed" },
      content: [{ type: "output_text", text: TEXT, annotations: [] }],
    })),
    usage: { input_tokens: 7, output_tokens: 5, total_tokens: 12 },
  }),
};

const replyOf = (protocol: Protocol, count: number) => Buffer.from(JSON.stringify(REPLIES[protocol](count)));

function passing(protocol: Protocol): Exchange {
  const request = clientRequest(protocol, smallBody(protocol, protocol === "responses" ? { store: false } : {}));
  const permitted = { outputLimit: undefined, inputEstimate: 7, strict: false };
  const exchange = openPassthrough(request, routeOf(protocol), permitted, {} as never);
  assert.ok(!isRefusal(exchange));
  return exchange;
}

for (const upstream of PROTOCOL_NAMES) {
  const client = upstream === "chat" ? "messages" : "chat";
  for (const [way, exchange, max] of [
    ["in its own protocol", () => passing(upstream), REPLY_BLOCKS_PASSED_MAX],
    ["translated", () => exchangeOf(client, smallBody(client, {}), routeOf(upstream)), REPLY_BLOCKS_MAX],
  ] as const) {
    test(`${upstream}, ${way}: the maximum number of blocks is an answer, and one more is a fault with its count`, () => {
      assert.ok(!isFault(exchange().whole(replyOf(upstream, max))));
      const fault = exchange().whole(replyOf(upstream, max + 1));
      assert.ok(isFault(fault) && fault.reason === TOO_MANY && fault.canBeAskedFor);
      assert.deepEqual([fault.usage?.input, fault.usage?.output], [7, 5]);
    });
  }

  test(`${upstream}: a reply with too many blocks is not parsed`, () => {
    let parsed = 0;
    const parse = (text: string) => {
      parsed++;
      return parseObject(text);
    };
    const { fault } = parseReply(replyOf(upstream, 4_000), upstream, parse, { blocksMax: 3_999 });
    assert.deepEqual([fault?.reason, parsed], [TOO_MANY, 0]);
    assert.ok(parseReply(replyOf(upstream, 4_000), upstream, parse, { blocksMax: 4_000 }).json);
    assert.equal(parsed, 1);
  });
}
