/** For any reply, the stream adds up to what the client would have got whole (docs/translation-rules.md rule 53). */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { PROTOCOL_NAMES } from "../../../../src/values/protocol.ts";
import { accumulateChat, accumulateMessages, accumulateResponses } from "./accumulate.ts";
import { eventsOf, planFor, replies, streamOf, wholeBody } from "./encoding.ts";

const RUNS = { numRuns: 400 };

for (const upstream of PROTOCOL_NAMES) {
  if (upstream !== "chat") {
    test(`chat client, ${upstream} upstream: the stream adds up to the whole reply`, () => {
      const plan = planFor("chat", upstream);
      fc.assert(
        fc.property(replies("chat"), fc.integer({ min: 1, max: 9 }), (reply, chars) => {
          const { choices, object: _object, ...body } = wholeBody(plan, reply);
          const [choice] = choices as { message: Record<string, unknown>; finish_reason: string }[];
          // A stream always begins with an empty content.
          const message = { ...choice?.message, content: choice?.message.content ?? "" };
          const told = accumulateChat(streamOf(plan, eventsOf(reply, chars)));
          assert.deepEqual(told, { ...body, message, finish_reason: choice?.finish_reason });
        }),
        RUNS,
      );
    });
  }
  if (upstream !== "messages") {
    test(`messages client, ${upstream} upstream: the stream adds up to the whole reply`, () => {
      const plan = planFor("messages", upstream);
      fc.assert(
        fc.property(replies("messages"), fc.integer({ min: 1, max: 9 }), (reply, chars) => {
          const told = accumulateMessages(streamOf(plan, eventsOf(reply, chars)));
          assert.deepEqual(told, wholeBody(plan, reply));
        }),
        RUNS,
      );
    });
  }
  if (upstream !== "responses") {
    test(`responses client, ${upstream} upstream: the stream adds up to the whole reply`, () => {
      const plan = planFor("responses", upstream);
      fc.assert(
        fc.property(replies("responses"), fc.integer({ min: 1, max: 9 }), (reply, chars) => {
          const told = accumulateResponses(streamOf(plan, eventsOf(reply, chars)));
          assert.deepEqual(told, wholeBody(plan, reply));
        }),
        RUNS,
      );
    });
  }
}
