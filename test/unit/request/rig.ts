/**
 * A relayed stream without a server: the test controls its time, its client, its upstream and the counts of its
 * converter.
 */
import type { ClientFrames, StreamConverter, UpstreamFault } from "../../../src/convert/exchange.ts";
import type { BodySink, ReplyFault } from "../../../src/dispatch/ask.ts";
import type { DisconnectPlan } from "../../../src/request/disconnect.ts";
import type { HoldExtension } from "../../../src/request/hold-extension.ts";
import { relayStream, type StreamEnd } from "../../../src/request/relay.ts";
import type { KeptState } from "../../../src/request/stored/kept-answer.ts";
import { NO_USAGE, type Usage } from "../../../src/values/tokens/usage.ts";
import { FakeClock } from "../dispatch/rig.ts";

interface RelayedOptions {
  readonly cut?: AbortSignal;
  /** How it is read on when its client disconnects; undefined: it is stopped. */
  readonly leaving?: DisconnectPlan;
  /** Whether its frames are the model's output. */
  readonly semantic?: boolean;
  /** Watches its cost; undefined: its hold covers the most. */
  readonly holdExtension?: HoldExtension;
  /** The text of a heartbeat; undefined: none is sent. */
  readonly heartbeat?: string;
  /** What its upstream says about the answer that it keeps; undefined: it keeps none. */
  readonly kept?: () => Promise<KeptState>;
  readonly heldBackMsMax?: number;
  /** Whether its client has disconnected before the first frame. */
  readonly gone?: boolean;
}

/** A stream that has begun with one frame. */
export class Relayed {
  readonly clock = new FakeClock();
  readonly ended: Promise<StreamEnd>;
  /** The ends reported to its bill. */
  readonly settled: StreamEnd[] = [];
  /** Whether its converter has the upstream's last count, and only the terminal marker is missing. */
  final = false;
  /** What its upstream has counted before its last count. */
  countedSoFar: Usage | undefined;
  /** Whether the client's answer is complete and the upstream is read on for its usage. */
  draining = false;
  /** The fault that its converter has found in the upstream's answer. */
  fault: UpstreamFault | undefined;
  aborted = false;
  /** Whether the rest of its upstream's answer is read and discarded. */
  discarded = false;
  /** Whether the client was disconnected. */
  destroyed = false;
  /** Whether its upstream is paused. */
  held = false;
  /** Asks, when the upstream is silent, whether it still works; undefined: nobody can tell. */
  isWorking: (() => Promise<boolean>) | undefined;
  /** Whether buffered data must not be delivered either. */
  heldFirmly = false;
  /** What was written to the client's socket. */
  readonly written: string[] = [];
  /** Whether that socket accepts more. */
  flowing = true;
  #sink: BodySink | undefined;
  #isGone = false;
  #leave = () => {};
  #drain = () => {};

  constructor({
    cut = new AbortController().signal,
    leaving,
    semantic = true,
    holdExtension,
    heartbeat,
    kept,
    heldBackMsMax,
    gone = false,
  }: RelayedOptions = {}) {
    this.#isGone = gone;
    const frame = { bytes: Buffer.from("a"), semantic, terminal: false };
    const isGone = () => this.#isGone;
    this.ended = relayStream({
      clock: this.clock,
      askedAtMs: this.clock.monotonicMs(),
      heartbeatMs: 60_000,
      headers: {},
      first: [frame],
      reply: {
        get gone() {
          return isGone();
        },
        ...{ open() {}, end() {} },
        destroy: () => {
          this.destroyed = true;
          this.clientLeaves();
        },
        onDrain: (task) => {
          this.#drain = task;
        },
        write: (bytes) => {
          this.written.push(Buffer.from(bytes).toString());
          return this.flowing;
        },
        onGone: (task) => {
          this.#leave = task;
          if (gone) task();
        },
      },
      converter: this.#converter(frame, heartbeat),
      body: {
        bytesReceived: 0,
        onSilence: (isWorking) => {
          this.isWorking = isWorking;
        },
        discardRest: () => {
          this.discarded = true;
        },
        pause: (firmly = false) => {
          this.held = true;
          this.heldFirmly = firmly;
        },
        resume: () => {
          this.held = false;
        },
        abort: () => {
          this.aborted = true;
        },
        consume: (sink) => {
          this.#sink = sink;
        },
      },
      askKept: kept,
      heldBackMsMax,
      bill: {
        ...{ holdExtension, thinks: false, checkpoint() {}, disconnectPlan: () => leaving },
        settle: async (end) => void this.settled.push(end),
      },
      failure: () => Buffer.from("failed"),
      onFirstToken() {},
      cut,
    });
  }

  /** Gives a frame for each piece; its end is the terminal frame if it has the upstream's count by then. */
  #converter(frame: ClientFrames, heartbeat: string | undefined): StreamConverter {
    const isDraining = () => this.draining;
    const faultNow = () => this.fault;
    const converter = {
      ended: false,
      keptId: "resp_1",
      get fault() {
        return faultNow();
      },
      truncate: () => [],
      heartbeat: () => (heartbeat === undefined ? undefined : Buffer.from(heartbeat)),
      get draining() {
        return isDraining();
      },
      push: () => [frame],
      end: () => (this.final ? [{ ...frame, semantic: false, terminal: true }] : []),
      counts: () => ({
        ...{ usage: this.final ? { ...NO_USAGE, input: 1, output: 1 } : this.countedSoFar, final: this.final },
        produced: { bytes: 1, tokens: 1, deltas: 1 },
      }),
    };
    return converter as unknown as StreamConverter;
  }

  /** The upstream sends data. */
  say(): void {
    this.#sink?.data(Buffer.from("b"));
  }

  upstreamEnds(): void {
    this.#sink?.end();
  }

  /** The upstream breaks off, or a limit of its time is over. */
  upstreamFails(cause: ReplyFault["cause"]): void {
    this.#sink?.error({ cause, code: undefined, reason: "a test's" });
  }

  /** The client's socket accepts data again. */
  clientReads(): void {
    this.#drain();
  }

  clientLeaves(): void {
    this.#isGone = true;
    this.#leave();
  }
}
