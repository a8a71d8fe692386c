/**
 * After the gateway has found a stop string, it reads the upstream only for its usage, for at most 10 s. Then the
 * client gets its proper end (docs/translation-rules.md rule 25), even if the upstream breaks off.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { SSE_EVENT_BYTES_MAX } from "../../../../src/wire/sse.ts";
import { Relay } from "./relay.ts";
import { exchangeOf, routeOf, smallBody, sse } from "./rig.ts";

const OPENING = sse("responses", [
  { type: "response.created", response: { id: "resp_1", output: [] } },
  { type: "response.output_text.delta", item_id: "m", output_index: 0, delta: "yes STOP no" },
]);
const MORE = sse("responses", [{ type: "response.output_text.delta", item_id: "m", output_index: 0, delta: "more" }]);
const USAGE = { input_tokens: 5, output_tokens: 6 };
const COMPLETED = sse("responses", [
  { type: "response.completed", response: { id: "resp_1", status: "completed", output: [], usage: USAGE } },
]);

function newRelay(inspected = ""): Relay {
  const body = smallBody("messages", { stream: true, stop_sequences: ["STOP"] });
  return new Relay(exchangeOf("messages", body, routeOf("responses")).stream(), inspected);
}

/** The text and the stop reason that the client has received. */
function toldBy(relay: Relay): { text: string; stop: unknown } {
  const deltas = relay.frames().map(({ data }) => data.delta as { text?: string; stop_reason?: string } | undefined);
  return {
    text: deltas.map((delta) => delta?.text ?? "").join(""),
    stop: deltas.find((delta) => delta?.stop_reason)?.stop_reason,
  };
}

test("the usage of an upstream that ends in time is counted", async () => {
  const relay = newRelay();
  relay.say(OPENING);
  relay.pass(9_000);
  assert.deepEqual(toldBy(relay), { text: "yes ", stop: undefined });
  relay.say(MORE + COMPLETED);
  const end = await relay.end;
  assert.deepEqual([end.reason, end.counts.usage?.output], ["complete", 6]);
  assert.deepEqual(toldBy(relay), { text: "yes ", stop: "stop_sequence" });
});

test("an upstream that continues is cut after 10 s, and the client gets a proper end", async () => {
  const relay = newRelay();
  relay.say(OPENING);
  for (let second = 0; second < 9; second++) {
    relay.pass(1_000);
    relay.say(MORE);
  }
  assert(!relay.aborted);
  relay.pass(1_000);
  const end = await relay.end;
  assert(relay.aborted);
  assert.deepEqual([end.reason, end.counts.usage], ["complete", undefined]);
  assert.deepEqual(toldBy(relay), { text: "yes ", stop: "stop_sequence" });
});

test("if the upstream breaks off, the client still gets a proper end", async () => {
  const relay = newRelay();
  relay.say(OPENING);
  relay.sink?.error({ cause: "upstream_timeout", code: undefined, reason: "reset" });
  assert.equal((await relay.end).reason, "complete");
  assert.deepEqual(toldBy(relay), { text: "yes ", stop: "stop_sequence" });
});

test("the ten seconds also apply to a stop string in the first bytes", async () => {
  const relay = newRelay(OPENING);
  relay.pass(10_000);
  assert.equal((await relay.end).reason, "complete");
  assert.deepEqual(toldBy(relay), { text: "yes ", stop: "stop_sequence" });
});

test("an event that is too large, which the client may have caused, is charged as if the client had disconnected", async () => {
  const relay = newRelay();
  relay.say(OPENING.replace("STOP", "GO"));
  relay.say(`data: ${"x".repeat(SSE_EVENT_BYTES_MAX)}`);
  const end = await relay.end;
  assert.deepEqual([end.reason, end.stopped, end.delivered], ["upstream_invalid", true, true]);
});
