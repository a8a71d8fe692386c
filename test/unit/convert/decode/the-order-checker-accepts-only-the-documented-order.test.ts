/** The order checker accepts only the documented order (after undici's decorator handler). */
import assert from "node:assert/strict";
import test from "node:test";
import { type ReplyEvent, stopFor } from "../../../../src/convert/hub-reply.ts";
import { ReplyOrder } from "../../../../src/convert/order.ts";
import { NO_USAGE } from "../../../../src/values/tokens/usage.ts";

const START: ReplyEvent = { type: "reply-start", upstreamId: undefined, serviceTier: undefined, createdS: undefined };
const STOP: ReplyEvent = { type: "reply-stop", stop: stopFor("end") };
const END: ReplyEvent = { type: "reply-end" };
const ERROR: ReplyEvent = { type: "reply-error", code: undefined, message: "" };
const USAGE: ReplyEvent = { type: "usage-update", usage: NO_USAGE };
const textStart = (key: string): ReplyEvent => ({ type: "text-start", key, startsMessage: true });
const textDelta = (key: string): ReplyEvent => ({ type: "text-delta", key, text: "x", logprobs: undefined });
const textEnd = (key: string): ReplyEvent => ({ type: "text-end", key });
const tool: ReplyEvent = { type: "tool-start", key: "t", id: "c", tool: { kind: "function", name: "f" } };
const toolDelta = (input: string): ReplyEvent => ({ type: "tool-delta", key: "t", input });
const toolEnd = (input: string): ReplyEvent => ({ type: "tool-end", key: "t", input });

function pass(events: readonly ReplyEvent[]): ReplyOrder {
  const order = new ReplyOrder();
  for (const event of events) assert.equal(order.see(event), event);
  return order;
}

test("the documented order is accepted", () => {
  assert.equal(pass([START, STOP, END]).ended, true);
  assert.equal(pass([ERROR]).ended, true);
  assert.equal(pass([START, textStart("a"), ERROR]).ended, true);
  pass([START, { type: "ping" }, textStart("a"), textStart("b"), textDelta("b"), USAGE, textDelta("a"), textEnd("b")]);
  pass([START, tool, toolDelta("{"), toolDelta("}"), toolEnd("{}"), USAGE, USAGE, STOP, END]);
  pass([START, tool, toolEnd("{}"), STOP, END]);
  assert.equal(pass([START, STOP]).ended, false);
});

const FORBIDDEN: Readonly<Record<string, readonly ReplyEvent[]>> = {
  "anything before the start": [textStart("a")],
  "usage before the start": [USAGE],
  "two starts": [START, START],
  "a delta without a block": [START, textDelta("a")],
  "an end without a block": [START, textEnd("a")],
  "a key used twice": [START, textStart("a"), textEnd("a"), textStart("a")],
  "a block opened twice": [START, textStart("a"), textStart("a")],
  "a delta of another kind": [START, textStart("t"), toolDelta("x")],
  "input that is not what was streamed": [START, tool, toolDelta("{}"), toolEnd("{} ")],
  "a stop while a block is open": [START, textStart("a"), STOP],
  "an end without a stop": [START, END],
  "usage after the stop": [START, STOP, USAGE],
  "two stops": [START, STOP, STOP],
  "anything after the end": [START, STOP, END, { type: "ping" }],
  "anything after an error": [START, ERROR, END],
};

for (const [name, events] of Object.entries(FORBIDDEN)) {
  test(`the order checker rejects ${name}`, () => {
    pass(events.slice(0, -1));
    assert.throws(() => pass(events), assert.AssertionError);
  });
}
