/**
 * Brings one accepted reply to the client: frames as they complete, heartbeats in silence, backpressure both ways, one
 * proper end (promise 8), and the charge durable before the client is told that its answer is complete.
 */
import type { Brake } from "./brake.ts";
import type { ClientFrames, Counts, StreamConverter, UpstreamFault } from "./convert/exchange.ts";
import type { UpstreamBody } from "./dispatch/ask.ts";
import { Pulse } from "./pulse.ts";
import type { Cause } from "./values/errors.ts";
import type { Clock } from "./values/time.ts";

/** The part of accept's reply that a stream needs. */
export interface StreamReply {
  readonly gone: boolean;
  open(status: number, headers: Record<string, string>): void;
  write(bytes: Uint8Array): boolean;
  end(bytes?: Uint8Array): void;
  onDrain(task: () => void): void;
  onGone(task: () => void): void;
}

/** How a stream ended, for the money and the metrics. */
export interface StreamEnd {
  /** `complete`, `client_gone`, `brake`, `draining`, `internal`, or the cause of the upstream's fault. */
  readonly reason: string;
  readonly complete: boolean;
  /** Whether a semantic byte was handed to a socket not known to be closed (promise 3). */
  readonly delivered: boolean;
  readonly counts: Counts;
}

export interface RelayParts {
  readonly clock: Clock;
  readonly heartbeatMs: number;
  readonly reply: StreamReply;
  readonly headers: Record<string, string>;
  readonly converter: StreamConverter;
  readonly body: UpstreamBody;
  /** Frames that were completed while the reply was inspected. */
  readonly first: readonly ClientFrames[];
  /** Makes the charge durable and sends it to the store. */
  readonly settle: (end: StreamEnd) => Promise<void>;
  /** The bytes that end the client's stream as failed. */
  readonly failure: (cause: Cause) => Uint8Array;
  /** Watches the cost of a stream that no output limit bounds; undefined where the hold covers the most. */
  readonly brake: Brake | undefined;
  /** Aborts when running streams must end now: the deadline of a drain. */
  readonly cut: AbortSignal;
  /** What becomes of the upstream when the client leaves: stopped, or read on for its own count of the tokens. */
  readonly onClientGone: "abort" | "drain";
  /** Called when the first semantic frame has been handed to the socket. */
  readonly onFirstToken: () => void;
  /** Called whenever more has been handed over and the stream goes on. */
  readonly onProgress: (counts: Counts) => void;
}

/** How long an upstream may go on for its usage once the answer is complete (protocols.md 2.0.9) or its client has left. */
const DRAIN_MS_MAX = 10_000;
/** How much it may still say in the second case. */
const DRAIN_BYTES_MAX = 4 * 1024 * 1024;

/** Relays until the stream has ended for the client and for the money. Never rejects but for a defect of ours. */
export function relayStream(parts: RelayParts): Promise<StreamEnd> {
  return new Promise((resolve, reject) => new StreamRelay(parts, resolve, reject).start());
}

class StreamRelay {
  readonly #parts: RelayParts;
  readonly #resolve: (end: StreamEnd) => void;
  readonly #reject: (error: unknown) => void;
  #delivered = false;
  #paused = false;
  /** Whether the upstream waits for the store's word on the hold. */
  #braked = false;
  #ending = false;
  /** Bytes read behind a client that has left; undefined while it is there. */
  #drainedBytes: number | undefined;
  #pulse: Pulse | undefined;
  #cancelDrain: (() => void) | undefined;

  constructor(parts: RelayParts, resolve: (end: StreamEnd) => void, reject: (error: unknown) => void) {
    this.#parts = parts;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(): void {
    const { reply, body, first, headers, converter, brake, cut } = this.#parts;
    reply.onGone(() => this.#clientGone());
    if (this.#ending) return;
    reply.open(200, headers);
    reply.onDrain(() => this.#drained());
    this.#pulse = new Pulse(this.#parts.clock, this.#parts.heartbeatMs, () => this.#guard(() => this.#beat()));
    cut.addEventListener("abort", this.#onCut);
    if (this.#send(first)) return;
    if (converter.fault) {
      this.#fail(converter.fault);
      return;
    }
    this.#boundDrain();
    brake?.onAnswer(() => this.#guard(() => this.#watchCost()));
    this.#guard(() => this.#watchCost());
    if (this.#ending) return;
    body.consume({
      data: (chunk) => this.#guard(() => this.#push(chunk)),
      end: () => this.#guard(() => this.#upstreamEnded()),
      error: (fault) => this.#guard(() => this.#upstreamEnded(fault)),
    });
  }

  /** At the edge of its hold a stream waits for the store's answer, and ends where there is no more (promise 1). */
  #watchCost(): void {
    const { brake, converter, body } = this.#parts;
    if (!brake || converter.draining) return;
    const verdict = brake.look(converter.counts());
    if (verdict === "stop") {
      this.#truncate(brake);
      return;
    }
    const held = verdict === "wait";
    if (held === this.#braked) return;
    this.#braked = held;
    if (held) body.pause();
    else if (!this.#paused) body.resume();
  }

  /** The client's answer is cut here, as by an output limit of its own. */
  #truncate(brake: Brake): void {
    const { body, converter } = this.#parts;
    body.abort();
    const counts = { ...converter.counts(), final: false };
    const frames = converter.truncate(brake.usageOf(counts));
    this.#noteDelivered(frames);
    this.#end("brake", false, bytesOf(frames), counts);
  }

  /** A defect in a callback must end this request and no other. */
  #guard(step: () => void): void {
    if (this.#ending) return;
    try {
      step();
    } catch (error) {
      this.#defect(error);
    }
  }

  /** The client pays for what it was given before the defect, as for any cut stream (promise 3). */
  #defect(error: unknown): void {
    if (this.#ending) {
      this.#reject(error);
      return;
    }
    this.#ending = true;
    this.#pulse?.stop();
    this.#cancelDrain?.();
    const { body, cut, settle, converter } = this.#parts;
    cut.removeEventListener("abort", this.#onCut);
    body.abort();
    const reject = () => this.#reject(error);
    const counts = converter.counts();
    settle({ reason: "internal", complete: false, delivered: this.#delivered, counts }).then(reject, reject);
  }

  #push(chunk: Uint8Array): void {
    const { converter } = this.#parts;
    if (this.#drainedBytes !== undefined) {
      this.#readOn(chunk, this.#drainedBytes + chunk.length);
      return;
    }
    if (this.#send(converter.push(chunk))) return;
    if (converter.fault) {
      this.#fail(converter.fault);
      return;
    }
    this.#boundDrain();
    this.#watchCost();
  }

  /** Behind a stop string of our own finding the upstream may go on for a while, as it knows the bill. */
  #boundDrain(): void {
    if (!this.#parts.converter.draining || this.#cancelDrain) return;
    this.#cancelDrain = this.#parts.clock.after(DRAIN_MS_MAX, () => this.#guard(() => this.#drainedLongEnough()));
  }

  #drainedLongEnough(): void {
    this.#parts.body.abort();
    this.#upstreamEnded();
  }

  /** The upstream is done, one way or another: with its stop reason seen it is still a proper end (S3). */
  #upstreamEnded(fault?: UpstreamFault): void {
    const { converter } = this.#parts;
    if (this.#drainedBytes !== undefined) {
      converter.end();
      this.#endGone();
      return;
    }
    if (this.#send(converter.end())) return;
    this.#fail(fault ?? converter.fault ?? { cause: "upstream_invalid", code: "server_error", reason: "no end" });
  }

  /** Hands frames to the socket; true when they held the terminal frame. */
  #send(frames: readonly ClientFrames[]): boolean {
    for (const frame of frames) {
      if (frame.terminal) {
        this.#complete(frame, frames.slice(frames.indexOf(frame) + 1));
        return true;
      }
      this.#write(frame);
    }
    if (this.#delivered && frames.length > 0) this.#parts.onProgress(this.#parts.converter.counts());
    return false;
  }

  #write(frame: ClientFrames): void {
    const { reply } = this.#parts;
    if (reply.gone) return;
    const flowing = reply.write(frame.bytes);
    if (frame.semantic && !this.#delivered) {
      this.#delivered = true;
      this.#parts.onFirstToken();
    }
    this.#pulse?.touch();
    if (!flowing && !this.#paused) {
      this.#paused = true;
      this.#parts.body.pause();
    }
  }

  #drained(): void {
    if (!this.#paused || this.#ending) return;
    this.#paused = false;
    if (!this.#braked) this.#parts.body.resume();
  }

  #complete(terminal: ClientFrames, rest: readonly ClientFrames[]): void {
    const frames = [terminal, ...rest];
    this.#noteDelivered(frames);
    this.#parts.body.letGo(); // Whatever an upstream says after its terminal frame is nobody's (S2).
    this.#end("complete", true, bytesOf(frames));
  }

  /** The last frames wait for the charge, which must know whether anything of the model's is in them. */
  #noteDelivered(last: readonly ClientFrames[]): void {
    if (this.#delivered || this.#parts.reply.gone || !last.some((frame) => frame.semantic)) return;
    this.#delivered = true;
    this.#parts.onFirstToken();
  }

  #fail(fault: UpstreamFault): void {
    this.#parts.body.abort();
    this.#end(fault.cause, false, this.#parts.failure(fault.cause));
  }

  /** The deadline of a drain: a proper end, and an exact bill for what was produced (promise 12). */
  readonly #onCut = (): void => {
    this.#parts.body.abort();
    if (this.#drainedBytes !== undefined) this.#endGone();
    this.#end("draining", false, this.#parts.failure("draining"));
  };

  #clientGone(): void {
    if (this.#ending) return;
    if (this.#parts.onClientGone === "drain" && !this.#parts.converter.counts().final) {
      this.#drainForUsage();
      return;
    }
    this.#parts.body.abort();
    // Clients that close right behind the last chunk had all of it.
    const { final } = this.#parts.converter.counts();
    this.#end(final ? "complete" : "client_gone", final, undefined);
  }

  /** Nobody reads any more, but the upstream knows the bill. */
  #drainForUsage(): void {
    this.#drainedBytes = 0;
    this.#pulse?.stop();
    this.#cancelDrain?.();
    this.#cancelDrain = this.#parts.clock.after(DRAIN_MS_MAX, () => this.#guard(() => this.#endGone()));
    if (!this.#paused) return;
    this.#paused = false;
    if (!this.#braked) this.#parts.body.resume();
  }

  #readOn(chunk: Uint8Array, bytes: number): void {
    const { converter, onProgress } = this.#parts;
    this.#drainedBytes = bytes;
    converter.push(chunk);
    const counts = converter.counts();
    if (counts.final || converter.ended || converter.fault || bytes > DRAIN_BYTES_MAX) this.#endGone();
    else if (this.#delivered) onProgress(counts);
  }

  /** By the upstream's count where it has given it meanwhile; a cut stream all the same, so never above the hold. */
  #endGone(): void {
    this.#parts.body.abort();
    this.#end("client_gone", false, undefined);
  }

  #end(
    reason: string,
    complete: boolean,
    last: Uint8Array | undefined,
    counts: Counts = this.#parts.converter.counts(),
  ): void {
    if (this.#ending) return;
    this.#ending = true;
    this.#pulse?.stop();
    this.#cancelDrain?.();
    this.#parts.cut.removeEventListener("abort", this.#onCut);
    const end: StreamEnd = { reason, complete, delivered: this.#delivered, counts };
    this.#parts.settle(end).then(() => {
      if (!this.#parts.reply.gone && last) this.#parts.reply.end(last);
      this.#resolve(end);
    }, this.#reject);
  }

  /** Ten seconds of silence: the client gets a sign of life in its own protocol. */
  #beat(): void {
    const { converter, reply } = this.#parts;
    const bytes = this.#paused ? undefined : converter.heartbeat();
    if (bytes && !reply.gone) reply.write(bytes);
  }
}

function bytesOf(frames: readonly ClientFrames[]): Uint8Array {
  return Buffer.concat(frames.map((frame) => frame.bytes));
}
