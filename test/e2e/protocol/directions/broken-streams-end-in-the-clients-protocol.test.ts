/**
 * ARCHITECTURE.md promise 8 across protocols: if an upstream's stream breaks or fails, it ends in the form of the
 * client's protocol.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import type { Fault } from "../../../../src/simulator/server.ts";
import type { LedgerLine } from "../../../../src/store/records.ts";
import type { Protocol } from "../../../../src/values/protocol.ts";
import type { GatewayHere } from "../../../rig/gateway.ts";
import { framesOf, recomputed, usageLines } from "../whole/asking.ts";
import { askFor, CROSS_DIRECTIONS, type Json, post, recordOf, startDirections } from "./rig.ts";

let here: GatewayHere;

before(async () => {
  here = await startDirections();
});

after(() => here.close());

const SECRET = "words of the upstream's own";

/** After nine events the text or the calls have begun on every protocol. */
const FAULTS: readonly (readonly [string, Fault])[] = [
  ["ends without a terminal event", { endAfterEvents: 9 }],
  ["resets the connection", { resetAfterEvents: 9 }],
  ["sends garbage", { garbageAfterEvents: 9 }],
  ["sends half a frame and ends", { garbageAfterEvents: { n: 9, text: 'data: {"half' } }],
  ["reports an error", { errorEventAfter: { n: 9, type: "api_error", message: SECRET } }],
  ["reports an overload", { errorEventAfter: { n: 9, type: "overloaded_error", message: SECRET } }],
  ["sends an event over the limit", { hugeEvent: 5 * 1024 * 1024 }],
];

/** The reply that breaks. */
const REPLIES = {
  text: { text: "a few words ".repeat(20) },
  calls: {
    thinking: "hm",
    tools: ["f", "g"].map((name) => ({ name, arguments: { long: "x".repeat(300) } })),
    interleave: true,
  },
} as const;

for (const direction of CROSS_DIRECTIONS) {
  for (const [what, reply] of Object.entries(REPLIES)) {
    for (const [name, fault] of FAULTS) {
      test(`${direction.client} client: in ${what} the ${direction.upstream} upstream ${name}`, async () => {
        const account = await here.account();
        here.simulator.program({ ...reply, fault });
        const answer = await post(here, direction.client, account.key, askFor(direction, { stream: true }));
        assert.equal(answer.status, 200);
        const text = await answer.text();
        ENDS[direction.client](text);
        assert.ok(!text.includes(SECRET));
        await here.requestEnd(answer.headers.get("x-request-id") ?? "");
        assert.deepEqual((await here.store.inspect(account.tag))?.holds, []);
        const lines = await usageLines(here, account);
        assert.equal(lines.length, 1);
        // The event over the limit comes before any content: what was never delivered is not charged.
        assert.equal(lines[0]?.kind, "hugeEvent" in fault ? "absorbed" : "usage");
        assert.equal(lines[0]?.amount, recomputed(lines[0] as LedgerLine));
      });
    }
  }
}

function parsed(text: string): { event: string | undefined; json: Json }[] {
  return framesOf(text)
    .filter(({ data }) => data !== "" && data !== "[DONE]")
    .map(({ event, data }) => ({ event, json: JSON.parse(data) as Json }));
}

/** Asserts the single proper end of a failed stream, and nothing that reads as success. */
const ENDS: Readonly<Record<Protocol, (text: string) => void>> = {
  chat(text) {
    assert.ok(!text.includes("[DONE]"));
    const frames = parsed(text);
    const last = frames.at(-1)?.json;
    assert.equal(recordOf(last?.error).type, "server_error");
    for (const { json } of frames.slice(0, -1)) {
      assert.equal(json.object, "chat.completion.chunk");
      for (const choice of json.choices as readonly Json[]) assert.equal(choice.finish_reason ?? null, null);
    }
  },
  messages(text) {
    const names = parsed(text).map(({ event }) => event);
    assert.equal(names.at(0), "message_start");
    assert.equal(names.at(-1), "error");
    assert.equal(names.filter((name) => name === "error").length, 1);
    assert.ok(!names.includes("message_stop") && !names.includes("message_delta"));
    assert.equal(recordOf(parsed(text).at(-1)?.json.error).type, "overloaded_error");
  },
  responses(text) {
    const frames = parsed(text);
    assert.deepEqual(
      frames.slice(-2).map(({ event }) => event),
      ["error", "response.failed"],
    );
    assert.ok(!text.includes("response.completed"));
    const opened = recordOf(frames[0]?.json.response);
    const failed = recordOf(frames.at(-1)?.json.response);
    assert.deepEqual([failed.id, failed.status], [opened.id, "failed"]);
    assert.ok(recordOf(failed.error).code);
    const numbers = frames.map(({ json }) => json.sequence_number);
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index),
    );
  },
};
