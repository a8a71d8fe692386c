/**
 * After a stop string that was found here the upstream is read for its usage only, for 10 s at most; then the client
 * gets its proper end (docs/translation-rules.md rule 25), also when the upstream breaks off.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { BodySink } from "../../../../src/dispatch/ask.ts";
import { relayStream, type StreamEnd } from "../../../../src/request/relay.ts";
import type { Clock } from "../../../../src/values/time.ts";
import { SSE_EVENT_BYTES_MAX } from "../../../../src/wire/sse.ts";
import { exchangeOf, framesOf, routeOf, smallBody, sse } from "./rig.ts";

const OPENING = sse("responses", [
  { type: "response.created", response: { id: "resp_1", output: [] } },
  { type: "response.output_text.delta", item_id: "m", output_index: 0, delta: "yes STOP no" },
]);
const MORE = sse("responses", [{ type: "response.output_text.delta", item_id: "m", output_index: 0, delta: "more" }]);
const USAGE = { input_tokens: 5, output_tokens: 6 };
const COMPLETED = sse("responses", [
  { type: "response.completed", response: { id: "resp_1", status: "completed", output: [], usage: USAGE } },
]);

/** A relay whose time and upstream the test moves. */
class Relay {
  readonly written: Buffer[] = [];
  readonly end: Promise<StreamEnd>;
  aborted = false;
  sink: BodySink | undefined;
  #timers: { readonly atMs: number; readonly task: () => void }[] = [];
  #nowMs = 0;

  /** @param inspected what the upstream had said when its reply was accepted. */
  constructor(inspected = "") {
    const converter = exchangeOf(
      "messages",
      smallBody("messages", { stream: true, stop_sequences: ["STOP"] }),
      routeOf("responses"),
    ).stream();
    const clock: Clock = {
      monotonicMs: () => this.#nowMs,
      wallMs: () => this.#nowMs,
      after: (ms, task) => {
        const timer = { atMs: this.#nowMs + ms, task };
        this.#timers.push(timer);
        return () => {
          this.#timers = this.#timers.filter((one) => one !== timer);
        };
      },
    };
    const write = (bytes?: Uint8Array) => (bytes ? this.written.push(Buffer.from(bytes)) > 0 : true);
    this.end = relayStream({
      clock,
      heartbeatMs: 60_000,
      reply: { gone: false, open() {}, write, end: write, onDrain() {}, onGone() {} },
      headers: {},
      converter,
      body: {
        consume: (sink) => {
          this.sink = sink;
        },
        pause() {},
        resume() {},
        abort: () => {
          this.aborted = true;
        },
        letGo() {},
        bytesReceived: 0,
      },
      first: converter.push(Buffer.from(inspected)),
      holdExtension: undefined,
      settle: async () => {},
      failure: () => Buffer.from("failed"),
      cut: new AbortController().signal,
      askedAtMs: 0,
      thinks: false,
      leaving: () => assert.fail("nobody leaves"),
      onFirstToken() {},
      onProgress() {},
    });
  }

  say(stream: string): void {
    this.sink?.data(Buffer.from(stream));
  }

  /** Lets time pass. */
  pass(ms: number): void {
    this.#nowMs += ms;
    for (const timer of this.#timers.filter(({ atMs }) => atMs <= this.#nowMs)) timer.task();
  }

  /** Text and stop reason that the client has. */
  told(): { text: string; stop: unknown } {
    const frames = framesOf(Buffer.concat(this.written).toString());
    const deltas = frames.map(({ data }) => data.delta as { text?: string; stop_reason?: string } | undefined);
    return {
      text: deltas.map((delta) => delta?.text ?? "").join(""),
      stop: deltas.find((delta) => delta?.stop_reason)?.stop_reason,
    };
  }
}

test("an upstream that ends in time tells the usage", async () => {
  const relay = new Relay();
  relay.say(OPENING);
  relay.pass(9_000);
  assert.deepEqual(relay.told(), { text: "yes ", stop: undefined });
  relay.say(MORE + COMPLETED);
  const end = await relay.end;
  assert.deepEqual([end.reason, end.counts.usage?.output], ["complete", 6]);
  assert.deepEqual(relay.told(), { text: "yes ", stop: "stop_sequence" });
});

test("an upstream that goes on is cut after 10 s, and the client's end is a proper one", async () => {
  const relay = new Relay();
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
  assert.deepEqual(relay.told(), { text: "yes ", stop: "stop_sequence" });
});

test("an upstream that breaks off takes nothing back", async () => {
  const relay = new Relay();
  relay.say(OPENING);
  relay.sink?.error({ cause: "upstream_timeout", code: undefined, reason: "reset" });
  assert.equal((await relay.end).reason, "complete");
  assert.deepEqual(relay.told(), { text: "yes ", stop: "stop_sequence" });
});

test("a stop string in the very first bytes bounds the upstream all the same", async () => {
  const relay = new Relay(OPENING);
  relay.pass(10_000);
  assert.equal((await relay.end).reason, "complete");
  assert.deepEqual(relay.told(), { text: "yes ", stop: "stop_sequence" });
});

test("an event that is too large may be of the client's asking: the bill is that of a client that left", async () => {
  const relay = new Relay();
  relay.say(OPENING.replace("STOP", "GO"));
  relay.say(`data: ${"x".repeat(SSE_EVENT_BYTES_MAX)}`);
  const end = await relay.end;
  assert.deepEqual([end.reason, end.stopped, end.delivered], ["upstream_invalid", true, true]);
});
