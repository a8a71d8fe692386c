/** A relayed stream whose clock and upstream are controlled by the test. */
import assert from "node:assert/strict";
import type { StreamConverter } from "../../../../src/convert/exchange.ts";
import type { BodySink } from "../../../../src/dispatch/ask.ts";
import { relayStream, type StreamEnd } from "../../../../src/request/relay.ts";
import type { Clock } from "../../../../src/values/time.ts";
import { type Frame, framesOf } from "./rig.ts";

export class Relay {
  readonly written: Buffer[] = [];
  readonly end: Promise<StreamEnd>;
  aborted = false;
  sink: BodySink | undefined;
  #timers: { readonly atMs: number; readonly task: () => void }[] = [];
  #nowMs = 0;

  /** @param inspected the bytes that the upstream had sent when its reply was accepted. */
  constructor(converter: StreamConverter, inspected = "") {
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
      reply: { gone: false, open() {}, write, end: write, destroy() {}, onDrain() {}, onGone() {} },
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
        discardRest() {},
        onSilence() {},
        bytesReceived: 0,
      },
      first: converter.push(Buffer.from(inspected)),
      bill: {
        holdExtension: undefined,
        thinks: false,
        checkpoint() {},
        disconnectPlan: () => assert.fail("the client does not disconnect"),
        settle: async () => {},
      },
      failure: () => Buffer.from("failed"),
      cut: new AbortController().signal,
      askedAtMs: 0,
      onFirstToken() {},
    });
  }

  say(stream: string): void {
    this.sink?.data(Buffer.from(stream));
  }

  /** Advances the clock and runs the timers that are due. */
  pass(ms: number): void {
    this.#nowMs += ms;
    for (const timer of this.#timers.filter(({ atMs }) => atMs <= this.#nowMs)) timer.task();
  }

  /** The frames that the client has received. */
  frames(): Frame[] {
    return framesOf(Buffer.concat(this.written).toString());
  }
}
