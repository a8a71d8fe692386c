/**
 * Rules 5 and 48 in one stream: a responses server that begins with its first item, and a client that may refer to the
 * items it gets. The client gets one response with one id, and the item that carries the others comes before the end.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Exchange } from "../../../../src/convert/exchange.ts";
import { openPassthrough } from "../../../../src/convert/passthrough/passthrough.ts";
import { isRefusal } from "../../../../src/values/errors.ts";
import { type Body, routeTo } from "../request/translate.ts";
import { clientRequest, type Frame, framesOf, sse } from "../translate/rig.ts";
import { CALL, type Item, MESSAGE, OWN, placed, refer } from "./rig.ts";

const ROUTE = routeTo("responses");
const USAGE = { input_tokens: 5, output_tokens: 3, total_tokens: 8 };

function exchangeOf(more: Body = {}, openEnded = false): Exchange {
  const request = clientRequest("responses", { model: "m", input: "hi", stream: true, ...more });
  const exchange = openPassthrough(request, ROUTE, { outputLimit: undefined, strict: false, openEnded }, OWN);
  if (isRefusal(exchange)) throw new Error(JSON.stringify(exchange));
  return exchange;
}

/** The events of two items and of the end, numbered from `first` or not at all. */
function events(first: number | undefined, output: readonly Item[] = [MESSAGE, CALL]): Item[] {
  const place = { item_id: MESSAGE.id, output_index: 0, content_index: 0 };
  const told: Item[] = [
    { type: "response.output_item.added", output_index: 0, item: { ...MESSAGE, status: "in_progress", content: [] } },
    { type: "response.content_part.added", ...place, part: { type: "output_text", text: "", annotations: [] } },
    { type: "response.output_text.delta", ...place, delta: "R" },
    { type: "response.output_item.done", output_index: 0, item: MESSAGE },
    { type: "response.output_item.added", output_index: 1, item: { ...CALL, arguments: "" } },
    { type: "response.output_item.done", output_index: 1, item: CALL },
    {
      type: "response.completed",
      response: { id: "resp_upstream", object: "response", status: "completed", model: "m", output, usage: USAGE },
    },
  ];
  return told.map((event, at) => (first === undefined ? event : { ...event, sequence_number: first + at }));
}

function relayed(exchange: Exchange, payloads: readonly Item[], chunkBytes = 1_000_000): Frame[] {
  const converter = exchange.stream();
  const bytes = Buffer.from(sse("responses", payloads));
  let text = "";
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    for (const frame of converter.push(bytes.subarray(at, at + chunkBytes))) text += Buffer.from(frame.bytes);
  }
  for (const frame of converter.end()) text += Buffer.from(frame.bytes);
  assert.equal(converter.fault, undefined);
  return framesOf(text);
}

const responseOf = (frame: Frame | undefined) => frame?.data.response as Item;
const carriersOf = (frames: readonly Frame[]) =>
  frames.filter(({ data }) => String((data.item as Item | undefined)?.id).startsWith("rs_gw1."));

for (const first of [0, 1, 7, undefined]) {
  test(`numbered from ${first}: one created event, one id, one carrier before the end`, async () => {
    const frames = relayed(exchangeOf(), events(first));
    assert.deepEqual(
      frames.map(({ event }) => event?.replace("response.", "")),
      [
        ...["created", "output_item.added", "content_part.added", "output_text.delta", "output_item.done"],
        ...["output_item.added", "output_item.done", "output_item.added", "output_item.done", "completed"],
      ],
    );
    const { id } = responseOf(frames[0]);
    assert.match(String(id), /^resp_/);
    assert.equal(responseOf(frames.at(-1)).id, id);
    assert.equal(responseOf(frames[0]).status, "in_progress");
    const [carrier, ...more] = carriersOf(frames);
    assert.equal(more.length, 1, "the carrier has its added and its done event");
    assert.equal(carrier?.data.output_index, 2);
    const ids = [refer(MESSAGE.id), refer(CALL.id), refer((carrier?.data.item as Item | undefined)?.id)];
    assert.deepEqual(await placed(ids), [MESSAGE, CALL]);
  });

  test(`numbered from ${first}: sequence numbers never decrease`, () => {
    const numbers = relayed(exchangeOf(), events(first)).flatMap(({ data }) => (data.sequence_number ?? []) as number);
    // The created event that the gateway adds to a stream numbered from 0 has the number of the first event, whose
    // bytes must not change.
    const least = (at: number) => Number(numbers[at - 1]) + (at === 1 && first === 0 ? 0 : 1);
    for (const [at, number] of numbers.entries()) assert.ok(at === 0 || number >= least(at), numbers.join());
  });
}

test("the events are the same however the bytes are cut, and a request with store: false gets no carrier", () => {
  const whole = relayed(exchangeOf(), events(1)).map(({ event }) => event);
  for (const bytes of [1, 7, 64])
    assert.deepEqual(
      relayed(exchangeOf(), events(1), bytes).map(({ event }) => event),
      whole,
    );
  const frames = relayed(exchangeOf({ store: false }), events(1));
  assert.deepEqual(carriersOf(frames), []);
  assert.equal(responseOf(frames.at(-1)).id, responseOf(frames[0]).id);
});

test("items that only the last event contains can be referred to as well", async () => {
  const frames = relayed(exchangeOf(), events(1).slice(-1));
  const carrier = carriersOf(frames).at(-1)?.data.item as Item | undefined;
  assert.ok(carrier, "a carrier");
  assert.equal(frames[0]?.event, "response.created");
  assert.deepEqual(await placed([refer(MESSAGE.id), refer(CALL.id), refer(carrier.id)]), [MESSAGE, CALL]);
});

test("a stream that the gateway ends keeps its id, and its carrier comes before the end", async () => {
  const converter = exchangeOf({}, true).stream();
  const bytes = Buffer.from(sse("responses", events(1).slice(0, 4)));
  const usage = { input: 5, cachedInput: 0, cacheWrite: 0, cacheWrite1h: 0, output: 3, reasoning: 0, toolCalls: {} };
  const frames = framesOf(
    [...converter.push(bytes), ...converter.truncate(usage)]
      .map((frame) => Buffer.from(frame.bytes).toString())
      .join(""),
  );
  assert.equal(frames.at(-1)?.event, "response.incomplete");
  assert.equal(responseOf(frames.at(-1)).id, responseOf(frames[0]).id);
  const carrier = carriersOf(frames).at(-1)?.data.item as Item | undefined;
  assert.deepEqual(await placed([refer(MESSAGE.id), refer(carrier?.id)]), [MESSAGE]);
});
