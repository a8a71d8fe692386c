/**
 * Delivers one accepted reply to the client: frames as they complete, heartbeats in silence, backpressure in both
 * directions, and exactly one proper end (ARCHITECTURE.md promise 8). The charge is made durable before the client gets
 * the end of its answer.
 */
import type { AttemptCounts, ClientFrames, StreamConverter, UpstreamFault } from "../convert/exchange.ts";
import type { UpstreamBody } from "../dispatch/ask.ts";
import { BRAKE, CLIENT_GONE, COMPLETE } from "../settle/meter.ts";
import type { Cause } from "../values/errors.ts";
import type { Clock } from "../values/time.ts";
import { type DisconnectPlan, ReadAfterDisconnect } from "./disconnect.ts";
import type { HoldExtension } from "./hold-extension.ts";
import type { SeenCounts } from "./silence.ts";
import { type AskKept, KeptAnswer, type KeptState, owedForKept } from "./stored/kept-answer.ts";
import { HeldBack, IdleTimer } from "./stream-timers.ts";
import { StreamWatch } from "./stream-watch.ts";

/** The part of accept's reply that a stream needs. */
interface StreamReply {
  readonly gone: boolean;
  open(status: number, headers: Record<string, string>): void;
  write(bytes: Uint8Array): boolean;
  end(bytes?: Uint8Array): void;
  destroy(): void;
  onDrain(task: () => void): void;
  onGone(task: () => void): void;
}

/** How a stream ended, for the charge and the metrics. */
export interface StreamEnd {
  /** `complete`, `client_gone`, `brake`, `draining`, `internal`, or the cause of the upstream's fault. */
  readonly reason: string;
  readonly complete: boolean;
  /**
   * Whether any output, or the reply's proper end with a count, was handed to a socket not known to be closed (promise
   * 3).
   */
  readonly delivered: boolean;
  /** Whether the upstream had to be stopped before its count, after a stop string of the client's. */
  readonly stopped?: boolean;
  /** Whether the client can have caused the failure by its request. */
  readonly askedFor?: boolean;
  readonly counts: SeenCounts;
}

/** The bill of the stream. */
interface RelayedBill {
  /** Watches the cost of a stream without an output limit; undefined if the hold covers the maximum. */
  readonly holdExtension: HoldExtension | undefined;
  /** Whether the model may think unseen, so that a silent stream costs more and more. */
  readonly thinks: boolean;
  /** Called whenever more has been handed over and the stream goes on. */
  checkpoint(counts: SeenCounts): void;
  /**
   * Called once, when the client disconnects. @returns how the upstream is read from then on; undefined: it is stopped.
   */
  disconnectPlan(counts: SeenCounts, delivered: boolean): DisconnectPlan | undefined;
  /** Makes the charge durable and sends it to the store. */
  settle(end: StreamEnd): Promise<unknown>;
}

interface StreamParts {
  readonly clock: Clock;
  /** When the upstream was asked, on the clock's `monotonicMs`. */
  readonly askedAtMs: number;
  readonly heartbeatMs: number;
  readonly reply: StreamReply;
  readonly converter: StreamConverter;
  readonly body: UpstreamBody;
  /** Asks the upstream that keeps the answer under the id in its first event; undefined: it keeps nothing. */
  readonly askKept?: AskKept | undefined;
  /** After how long in total a client that holds back the stream counts as disconnected; undefined: never. */
  readonly heldBackMsMax?: number | undefined;
  readonly bill: RelayedBill;
  /** The bytes that end the client's stream as failed. */
  readonly failure: (cause: Cause) => Uint8Array;
  /** Aborts when running streams must end now: the deadline of a drain. */
  readonly cut: AbortSignal;
  /** Called when the first semantic frame has been handed to the socket. */
  readonly onFirstToken: () => void;
}

/** The beginning of a stream. It is not kept: the frames are slices of the chunk in which they arrived, up to 64 KB. */
interface StreamBeginning {
  readonly headers: Record<string, string>;
  /** Frames that were completed during inspection. */
  readonly first: readonly ClientFrames[];
}

/**
 * How long an upstream may go on to send its usage after the answer is complete (docs/translation-rules.md rule 25).
 */
const DRAIN_MS_MAX = 10_000;

/**
 * How long to wait for an upstream's terminal marker after its stop reason and its counts: some never send one and keep
 * the connection open.
 */
const MARKER_MS_MAX = 2_000;

const NO_END: UpstreamFault = { cause: "upstream_invalid", code: "server_error", reason: "no end" };

/** Relays until the stream has ended for the client and has been settled. Rejects only for a defect of ours. */
export function relayStream({ headers, first, ...parts }: StreamParts & StreamBeginning): Promise<StreamEnd> {
  return new Promise((resolve, reject) => new StreamRelay(parts, resolve, reject).start({ headers, first }));
}

class StreamRelay {
  readonly #parts: StreamParts;
  readonly #resolve: (end: StreamEnd) => void;
  readonly #reject: (error: unknown) => void;
  #delivered = false;
  /** Whether any frame was handed to a socket not known to be closed. */
  #handed = false;
  #ending = false;
  /** The counts when the last frames were handed over. */
  #seen: SeenCounts | undefined;
  /** Set if the client caused the end: by a stop string after which the upstream went on for too long. */
  #stopped = false;
  /** Set if the client can have caused a failure. */
  #askedFor = false;
  /** Set once the client has disconnected and the upstream is still read. */
  #disconnected: ReadAfterDisconnect | undefined;
  /** The answer that the upstream keeps; undefined: it keeps none. */
  readonly #kept: KeptAnswer | undefined;
  /** Whether the stream is over and the upstream is asked for its count. */
  #isAsking = false;
  readonly #watch: StreamWatch;
  #idleTimer: IdleTimer | undefined;
  #cancelDrain: (() => void) | undefined;
  #cancelMarker: (() => void) | undefined;
  /** Undefined if the client may hold back the upstream for any time. */
  readonly #heldBack: HeldBack | undefined;

  constructor(parts: StreamParts, resolve: (end: StreamEnd) => void, reject: (error: unknown) => void) {
    this.#parts = parts;
    const { clock, askedAtMs, converter, body, bill, reply, heldBackMsMax, askKept } = parts;
    this.#watch = new StreamWatch({
      clock,
      askedAtMs,
      converter,
      body,
      holdExtension: bill.holdExtension,
      thinks: bill.thinks,
      guard: (step) => this.#guard(step),
      onEdge: (holdExtension) => this.#truncate(holdExtension),
      onLook: (counts) => this.#delivered && bill.checkpoint(counts),
    });
    const disconnect = () => this.#guard(() => reply.destroy());
    this.#kept = askKept && new KeptAnswer(askKept, () => (this.#handed ? converter.keptId : undefined));
    this.#heldBack = heldBackMsMax === undefined ? undefined : new HeldBack(clock, heldBackMsMax, disconnect);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(beginning: StreamBeginning): void {
    this.#guard(() => this.#begin(beginning));
  }

  #begin({ headers, first }: StreamBeginning): void {
    const { reply, body, cut } = this.#parts;
    reply.onGone(() => this.#guard(() => this.#clientGone()));
    if (this.#ending) return;
    reply.open(200, headers);
    reply.onDrain(() => this.#guard(() => this.#drained()));
    this.#idleTimer = new IdleTimer(this.#parts.clock, this.#parts.heartbeatMs, () => this.#guard(() => this.#beat()));
    cut.addEventListener("abort", this.#onCut);
    // A stream that begins after the deadline gets no abort event any more.
    if (cut.aborted) {
      this.#onCut();
      return;
    }
    if (!this.#handOver(first, this.#watch.counts())) return;
    this.#watch.start();
    if (this.#ending) return;
    const kept = this.#kept;
    if (kept) body.onSilence(() => kept.isStillWritten());
    body.consume({
      data: (chunk) => this.#take(chunk),
      end: () => this.#guard(() => this.#upstreamEnded()),
      error: (fault) => this.#guard(() => this.#upstreamEnded(fault)),
    });
  }

  /** Cuts the client's answer here, as an output limit of its own would. */
  #truncate(holdExtension: HoldExtension): void {
    const { body, converter } = this.#parts;
    body.abort();
    const counts = this.#watch.counts();
    const frames = converter.truncate(holdExtension.usageOf(counts));
    // An end by the limit is an answer, even before its first token: the upstream's input alone may cost more than the
    // account has. If that were free, the client could repeat it endlessly.
    this.#delivered = true;
    this.#end(BRAKE, false, bytesOf(frames), counts);
  }

  /** A defect in a callback must end only this request. */
  #guard(step: () => void): void {
    if (this.#ending) return;
    try {
      step();
    } catch (error) {
      this.#defect(error);
    }
  }

  /** `#guard` for a chunk of the upstream's bytes, without a closure for each. */
  #take(chunk: Uint8Array): void {
    if (this.#ending) return;
    try {
      this.#push(chunk);
    } catch (error) {
      this.#defect(error);
    }
  }

  /** The client pays for what it got before the defect, as for any cut stream (promise 3). */
  #defect(error: unknown): void {
    if (this.#ending) {
      this.#reject(error);
      return;
    }
    this.#stopWatching();
    const { body, bill } = this.#parts;
    body.abort();
    const reject = () => this.#reject(error);
    const counts = this.#countsOrSeen();
    if (!counts) {
      reject();
      return;
    }
    bill.settle({ reason: "internal", complete: false, delivered: this.#delivered, counts }).then(reject, reject);
  }

  /** The counts of a stream with a defect: the defect may be in the counting. */
  #countsOrSeen(): SeenCounts | undefined {
    try {
      return this.#watch.counts();
    } catch {
      return this.#seen;
    }
  }

  #push(chunk: Uint8Array): void {
    const { converter, clock } = this.#parts;
    const frames = converter.push(chunk);
    this.#kept?.heard();
    const nowMs = clock.monotonicMs();
    const counts = this.#watch.saw(nowMs);
    if (this.#disconnected) {
      const isOver = this.#disconnected.isOver(chunk.length, converter, counts);
      if (isOver && converter.fault) this.#faulty(converter.fault);
      else if (isOver) this.#endGone();
      else if (this.#delivered || this.#hasId) this.#parts.bill.checkpoint(counts);
      return;
    }
    if (this.#handOver(frames, counts, nowMs)) this.#watch.look(counts);
  }

  /** Hands frames to the socket. @returns whether the stream goes on. */
  #handOver(frames: readonly ClientFrames[], counts: SeenCounts, nowMs?: number): boolean {
    if (this.#send(frames, counts, nowMs)) return false;
    const { fault } = this.#parts.converter;
    if (fault) {
      this.#faulty(fault);
      return false;
    }
    this.#boundDrain();
    this.#boundMarker(counts.final);
    return true;
  }

  /**
   * After a stop string that the gateway found, the upstream may go on for a while, because only it knows the final
   * count.
   */
  #boundDrain(): void {
    if (!this.#parts.converter.draining || this.#cancelDrain) return;
    this.#watch.endSilence();
    this.#cancelDrain = this.#parts.clock.after(DRAIN_MS_MAX, () => this.#guard(() => this.#drainedLongEnough()));
  }

  /** @param final whether only the terminal marker is missing. */
  #boundMarker(final: boolean): void {
    if (!final || this.#cancelMarker) return;
    this.#cancelMarker = this.#parts.clock.after(MARKER_MS_MAX, () =>
      this.#guard(() => {
        this.#cancelMarker = undefined;
        if (!this.#parts.converter.counts().final) return; // It went on after all.
        this.#parts.body.abort();
        this.#upstreamEnded();
      }),
    );
  }

  #drainedLongEnough(): void {
    this.#stopped = true;
    this.#parts.body.abort();
    this.#upstreamEnded();
  }

  /**
   * The upstream has ended in some way. If its stop reason was seen, it is still a proper end
   * (docs/translation-rules.md rule 49).
   */
  #upstreamEnded(fault?: UpstreamFault): void {
    const { converter } = this.#parts;
    const frames = converter.end();
    const { final } = converter.counts();
    if (!this.#disconnected && this.#send(frames, this.#watch.counts())) return;
    const ended = fault ?? converter.fault ?? NO_END;
    // A server that has reported a fault has no answer to keep. An event that broke off reports nothing.
    const isReported = converter.fault !== undefined && converter.fault.cause !== NO_END.cause;
    if (this.#kept && this.#handed && !isReported && !final) this.#endAsKept(this.#kept, ended);
    else this.#endUncounted(ended);
  }

  /** The upstream's answer is not one, or exceeds a limit of the gateway; then its server may have completed it. */
  #faulty(fault: UpstreamFault): void {
    if (this.#kept && this.#handed && isBeyondLimit(fault)) {
      this.#parts.body.abort();
      this.#endAsKept(this.#kept, fault);
    } else this.#endUncounted(fault);
  }

  #endUncounted(fault: UpstreamFault, counts?: SeenCounts): void {
    if (this.#disconnected || this.#parts.reply.gone) this.#endGone(counts);
    else this.#fail(fault, counts);
  }

  /** Ends a stream without a count by what its server says about the answer, which the client can retrieve. */
  #endAsKept(kept: KeptAnswer, fault: UpstreamFault): void {
    this.#isAsking = true;
    const seen = this.#watch.keptCounts();
    this.#watch.letFlow();
    this.#heldBack?.end();
    void kept.state().then((state) => this.#guard(() => this.#keptIs(state, fault, seen)));
  }

  /** @param seen the counts when the stream ended. */
  #keptIs(kept: KeptState, fault: UpstreamFault, seen: SeenCounts): void {
    const owed = owedForKept(kept, fault.cause, seen);
    this.#delivered ||= owed !== undefined;
    this.#stopped ||= owed !== undefined && !owed.final;
    this.#endUncounted(fault, owed);
  }

  /**
   * Hands frames to the socket; returns true if they included the terminal frame. @param counts of the stream including
   * them.
   */
  #send(frames: readonly ClientFrames[], counts: SeenCounts, nowMs = this.#parts.clock.monotonicMs()): boolean {
    this.#seen = counts;
    for (const frame of frames) {
      if (frame.terminal) {
        this.#complete(frame, frames.slice(frames.indexOf(frame) + 1));
        return true;
      }
      this.#write(frame, nowMs);
    }
    if (this.#delivered && frames.length > 0) this.#parts.bill.checkpoint(counts);
    return false;
  }

  #write(frame: ClientFrames, nowMs: number): void {
    const { reply } = this.#parts;
    if (reply.gone) return;
    const flowing = reply.write(frame.bytes);
    this.#handed = true;
    if (frame.semantic && !this.#delivered) {
      this.#delivered = true;
      this.#parts.onFirstToken();
    }
    this.#idleTimer?.touch(nowMs);
    if (flowing) return;
    this.#watch.pause(true);
    this.#heldBack?.begin(nowMs);
  }

  #drained(): void {
    this.#heldBack?.end();
    this.#watch.pause(false);
  }

  #complete(terminal: ClientFrames, rest: readonly ClientFrames[]): void {
    const frames = [terminal, ...rest];
    this.#noteDelivered(frames);
    this.#noteDeliveredEnd();
    this.#parts.body.discardRest(); // What an upstream sends after its terminal frame is discarded (docs/translation-rules.md rule 48).
    this.#end(COMPLETE, true, bytesOf(frames));
  }

  /** The last frames wait for the charge, which must know whether they contain any output of the model. */
  #noteDelivered(last: readonly ClientFrames[]): void {
    if (this.#delivered || this.#parts.reply.gone || !last.some((frame) => frame.semantic)) return;
    this.#delivered = true;
    this.#parts.onFirstToken();
  }

  #noteDeliveredEnd(): void {
    this.#delivered ||= !this.#parts.reply.gone && isAnswer(this.#parts.converter.counts());
  }

  #fail(fault: UpstreamFault, counts?: SeenCounts): void {
    this.#parts.body.abort();
    // A server that refuses a request without having run it counts nothing.
    const isCounted = (counts ?? this.#parts.converter.counts()).usage !== undefined;
    this.#askedFor = fault.canBeAskedFor === true || (fault.cause === "upstream_rejected" && isCounted);
    const isTooLarge = isBeyondLimit(fault);
    this.#stopped ||= isTooLarge;
    // The server may complete an answer that is too large for the gateway's limits, and the client can retrieve it.
    this.#delivered ||= isTooLarge && this.#hasId;
    this.#end(fault.cause, false, this.#parts.failure(fault.cause), counts);
  }

  /**
   * The deadline of a drain: a proper end, and the bill of a cut stream (promise 12), estimated if nothing was counted.
   */
  readonly #onCut = (): void =>
    this.#guard(() => {
      this.#parts.body.abort();
      if (this.#disconnected) this.#endGone();
      else this.#end("draining", false, this.#parts.failure("draining"));
    });

  #clientGone(): void {
    if (this.#isAsking) return;
    // Clients that close right after the last chunk have received all of it.
    if (this.#parts.converter.counts().final) {
      this.#parts.body.abort();
      this.#delivered ||= this.#handed;
      this.#end(this.#delivered ? COMPLETE : CLIENT_GONE, true, undefined);
      return;
    }
    const counts = this.#watch.counts();
    const plan = this.#parts.bill.disconnectPlan(counts, this.#delivered || this.#hasId);
    if (plan?.covers(counts)) this.#keepReading(plan, counts);
    else this.#endGone();
  }

  /** Keeps reading the upstream without a client, because only the upstream knows the bill. */
  #keepReading(plan: DisconnectPlan, counts: SeenCounts): void {
    this.#disconnected = new ReadAfterDisconnect(plan, counts, this.#parts.clock, () =>
      this.#guard(() => this.#endGone()),
    );
    this.#idleTimer?.stop();
    this.#cancelDrain?.();
    this.#cancelMarker?.();
    this.#heldBack?.end();
    this.#watch.letFlow();
  }

  /** Whether the client can read the answer later. */
  get #hasId(): boolean {
    return this.#kept !== undefined && this.#handed;
  }

  /** Ends with the upstream's count if it has arrived in the meantime, else with what is known. */
  #endGone(counts?: SeenCounts): void {
    const { body, converter } = this.#parts;
    body.abort();
    // An answer that its server broke off cannot be read later.
    if (converter.fault === undefined || isBeyondLimit(converter.fault)) this.#delivered ||= this.#hasId;
    this.#end(CLIENT_GONE, false, undefined, counts);
  }

  #end(reason: string, complete: boolean, last: Uint8Array | undefined, counts = this.#watch.counts()): void {
    if (this.#ending) return;
    this.#stopWatching();
    const [stopped, askedFor] = [this.#stopped, this.#askedFor];
    const end: StreamEnd = { reason, complete, delivered: this.#delivered, stopped, askedFor, counts };
    this.#parts.bill.settle(end).then(() => {
      try {
        if (!this.#parts.reply.gone && last) this.#parts.reply.end(last);
        this.#resolve(end);
      } catch (error) {
        this.#reject(error);
      }
    }, this.#reject);
  }

  #stopWatching(): void {
    this.#ending = true;
    this.#idleTimer?.stop();
    this.#cancelDrain?.();
    this.#cancelMarker?.();
    this.#heldBack?.end();
    this.#watch.stop();
    this.#disconnected?.stop();
    this.#parts.cut.removeEventListener("abort", this.#onCut);
  }

  /** After a silence, the client gets a heartbeat in its own protocol. */
  #beat(): void {
    const { converter, reply } = this.#parts;
    const bytes = this.#watch.paused ? undefined : converter.heartbeat();
    if (bytes && !reply.gone) reply.write(bytes);
  }
}

/** Whether an answer is too large for the gateway, which a client can bring about. */
function isBeyondLimit({ canBeAskedFor, ofModel }: UpstreamFault): boolean {
  return canBeAskedFor === true && !ofModel;
}

function bytesOf(frames: readonly ClientFrames[]): Uint8Array {
  return Buffer.concat(frames.map((frame) => frame.bytes));
}

/**
 * Whether the end of a stream is a delivery (ARCHITECTURE.md promise 3): it has a count, even if the answer is empty,
 * or its model has produced something, even if the client's protocol cannot show it.
 */
function isAnswer({ usage, final, produced }: AttemptCounts): boolean {
  return (final && usage !== undefined) || produced.bytes > 0;
}
