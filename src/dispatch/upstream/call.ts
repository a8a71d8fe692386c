/**
 * One HTTP exchange with an upstream: undici's events put in order, timed and unpacked. For anything that the upstream
 * does, the listener gets at most one head, then data, then exactly one end or failure, then nothing. What undici reads in a turn of
 * the event loop is looked at when it has read everything there was, for all calls one after another; before a timer or a client
 * that leaves ends the call, it is looked at then.
 */
import assert from "node:assert/strict";
import type { HeaderEdits } from "../../values/rules.ts";
import type { Clock, Cohort } from "../../values/time.ts";
import { type Failure, failure, failureOfError } from "../failure.ts";
import { Decoder } from "./decoder.ts";
import { isFailure, type ReplyFields, type ReplyHead, readReplyHead } from "./reply-head.ts";
import type { Slot } from "./slots.ts";
import type { Upstream, UpstreamController, UpstreamHandler } from "./upstream.ts";

export interface CallListener {
  head(head: ReplyHead): void;
  data(chunk: Uint8Array): void;
  end(): void;
  failed(failed: Failure): void;
  /** Something of the above has thrown; the call has been aborted. */
  defect(error: unknown): void;
}

interface CallRequest {
  readonly stream: boolean;
  /** Appended to the path of the upstream's protocol; empty for its model path. */
  readonly pathSuffix: string;
  readonly method: "POST" | "GET" | "DELETE";
  readonly query: string | undefined;
  /** Without a byte: the request has none. */
  readonly body: Uint8Array;
  readonly headers: readonly (readonly [string, string])[];
  readonly headerEdits: readonly HeaderEdits[];
  /** On the clock's `monotonicMs`. */
  readonly deadlineMs: number;
}

const DEADLINE = failure("deadline", "the request's time is over");

const ABORTED = new Error("aborted by the gateway");

/** How much, and for how long, an upstream may still say after the end of an answer before its connection is closed. */
const DISCARD_BYTES_MAX = 64 * 1024;
const DISCARD_MS_MAX = 1_000;

/** So much of what an upstream says in one turn waits for its end; more is looked at at once. */
const WAITING_BYTES_MAX = 64 * 1024;

/** Pieces of one turn up to this size together are looked at as one: longer ones cost more to copy than that saves. */
const JOINED_BYTES_MAX = 2 * 1024;

/** Bytes of a body, or what else there is to do about what an upstream has said. */
type Said = Buffer | (() => void);

export class Call implements UpstreamHandler {
  startedAtMs = 0;
  headersMs: number | undefined = undefined;
  firstByteMs: number | undefined = undefined;
  /** Decoded body bytes given to the listener. */
  bytesReceived = 0;
  /** Whether the request went onto a connection. */
  sent = false;

  readonly #upstream: Upstream;
  readonly #slot: Slot;
  readonly #clock: Clock;
  readonly #cohort: Cohort;
  #listener: CallListener;
  #isStream = false;
  #controller: UpstreamController | undefined = undefined;
  #cancelDiscard: () => void = () => {};
  #discardedBytes = 0;
  /** What the upstream has said in a turn that is not over. */
  #waitingBytes = 0;
  #waiting: Said[] | undefined;
  /** Made once: each turn in which the upstream says something needs it. */
  readonly #look = () => this.catchUp();
  #isCatchingUp = false;
  #decoder: Decoder | undefined = undefined;
  #phase: "connecting" | "waiting" | "body" | "over" = "connecting";
  #paused = false;
  #choked = false;
  #lastByteMs = 0;
  #deadlineMs = 0;
  /** Connect, then first byte or whole, then what is left of the request's time. */
  #cancelStep: () => void = () => {};
  /** Whether a body has begun, and nobody watches yet whether it goes on. */
  #isUnwatched = false;
  #cancelIdle: () => void = () => {};

  /** @param slot the call's slot at the upstream, given back when the call is over. */
  constructor(upstream: Upstream, slot: Slot, clock: Clock, cohort: Cohort, listener: CallListener) {
    this.#upstream = upstream;
    this.#slot = slot;
    this.#clock = clock;
    this.#cohort = cohort;
    this.#listener = listener;
  }

  /** Sends; once only. The request is not kept: what is read of it in answer may take long, and it can be large. */
  start(request: CallRequest): void {
    this.#isStream = request.stream;
    this.startedAtMs = this.#clock.monotonicMs();
    this.#deadlineMs = request.deadlineMs;
    try {
      this.#upstream.send(request, this);
    } catch (error) {
      this.#fail(failureOfError(error));
    }
    // Mostly a connection is kept, and the request is on it by now.
    if (this.#phase === "connecting") this.#startConnectTimer();
  }

  /** Whether the reply is complete, failed or aborted. */
  get over(): boolean {
    return this.#phase === "over";
  }

  /** From now on another one listens, and nothing of who did before is kept. */
  handTo(listener: CallListener): void {
    this.#listener = listener;
  }

  /** Ends the call in this very tick: the connection is destroyed, and the listener is not called again. */
  abort(): void {
    if (this.#phase === "over") return;
    this.#finish();
    this.#controller?.abort(ABORTED);
    this.#decoder?.destroy();
  }

  /**
   * Nobody needs the rest: it is read and thrown away, so that the connection can serve the next request, but only a
   * little and not for long. The listener is not called again.
   */
  letGo(): void {
    if (this.#phase === "over") return;
    this.#finish();
    this.#decoder?.destroy();
    this.#cancelDiscard = this.#clock.after(DISCARD_MS_MAX, () => this.#controller?.abort(ABORTED));
    this.#controller?.resume();
  }

  #discard(bytes: number): void {
    this.#discardedBytes += bytes;
    if (this.#discardedBytes <= DISCARD_BYTES_MAX) return;
    this.#cancelDiscard();
    this.#controller?.abort(ABORTED);
  }

  /** Stops the flow; what undici has already read may still arrive: a socket buffer, and what waits for the end of the turn. */
  pause(): void {
    if (this.#phase === "over" || this.#paused) return;
    this.#paused = true;
    this.#decoder?.pause();
    this.#controller?.pause();
  }

  resume(): void {
    if (this.#phase === "over" || !this.#paused) return;
    this.#paused = false;
    // The silence while we were not reading was ours.
    this.#lastByteMs = this.#clock.monotonicMs();
    this.#decoder?.resume();
    if (!this.#choked) this.#controller?.resume();
  }

  onRequestStart(controller: UpstreamController): void {
    this.#controller = controller;
    if (this.#phase === "over") {
      // Given up while connecting: undici writes nothing of a request that is aborted here.
      controller.abort(ABORTED);
      return;
    }
    assert.equal(this.#phase, "connecting");
    this.#phase = "waiting";
    this.sent = true;
    this.#startReplyTimer();
  }

  onResponseStart(controller: UpstreamController, status: number, fields: ReplyFields): void {
    // They are pieces of the whole read that they came in, up to 64 KB, and undici keeps them until the end.
    controller.rawHeaders = null;
    this.#atEndOfTurn(() => this.#started(status, fields));
  }

  onResponseData(_controller: UpstreamController, chunk: Buffer): void {
    this.#waitingBytes += chunk.length;
    this.#atEndOfTurn(chunk);
    // What an upstream sends at once has no bound of its own.
    if (this.#waitingBytes >= WAITING_BYTES_MAX) this.catchUp();
  }

  onResponseEnd(): void {
    this.#atEndOfTurn(() => this.#ended());
  }

  onResponseError(_controller: UpstreamController, error: Error): void {
    this.#atEndOfTurn(() => {
      this.#cancelDiscard();
      this.#fail(failureOfError(error));
    });
  }

  #atEndOfTurn(said: Said): void {
    if (this.#waiting) {
      this.#waiting.push(said);
      return;
    }
    this.#waiting = [said];
    this.#cohort.add(this.#look);
  }

  /** Looks now at what the upstream has said in this turn: whoever ends the call for another reason must know of it. */
  catchUp(): void {
    // What undici gives while an event is looked at comes after it.
    if (this.#isCatchingUp || !this.#waiting) return;
    const all = this.#waiting;
    this.#waiting = undefined;
    this.#isCatchingUp = true;
    try {
      for (let next = 0; next < all.length; ) next = this.#lookAt(all, next);
    } catch (defect) {
      this.abort();
      this.#listener.defect(defect);
    } finally {
      this.#isCatchingUp = false;
    }
    // Mostly a whole answer comes in one turn: only what goes on is watched for silence.
    if (this.#isUnwatched && this.#phase === "body") this.#watchIdle(this.#upstream.settings.timeouts.idleMs);
  }

  /** @returns what is next: small pieces that came one after another cost the listener as much as one. */
  #lookAt(all: readonly Said[], from: number): number {
    const said = all[from] as Said;
    if (typeof said === "function") {
      said();
      return from + 1;
    }
    let end = from + 1;
    for (let bytes = said.length; end < all.length; end++) {
      const more = all[end] as Said;
      if (typeof more === "function" || bytes + more.length > JOINED_BYTES_MAX) break;
      bytes += more.length;
    }
    this.#received(end === from + 1 ? said : Buffer.concat(all.slice(from, end) as Buffer[]));
    return end;
  }

  #timedOut(failed: Failure): void {
    this.catchUp();
    this.#fail(failed);
  }

  #started(status: number, fields: ReplyFields): void {
    if (this.#phase === "over" || status < 200) return;
    assert.equal(this.#phase, "waiting");
    this.#phase = "body";
    this.headersMs = this.#clock.monotonicMs();
    const head = readReplyHead(status, fields);
    if (isFailure(head)) {
      this.#fail(head);
      return;
    }
    if (head.encoding) this.#decoder = this.#openDecoder(head.encoding);
    this.#listener.head(head);
  }

  #received(chunk: Buffer): void {
    this.#waitingBytes -= chunk.length;
    if (this.#phase === "over") {
      this.#discard(chunk.length);
      return;
    }
    assert.equal(this.#phase, "body");
    this.#lastByteMs = this.#clock.monotonicMs();
    if (this.firstByteMs === undefined) this.#noteFirstByte();
    if (!this.#decoder) {
      this.#give(chunk);
    } else if (!this.#decoder.write(chunk)) {
      this.#choked = true;
      this.#controller?.pause();
    }
  }

  #ended(): void {
    this.#cancelDiscard();
    if (this.#phase === "over") return;
    this.#isUnwatched = false;
    this.#cancelIdle();
    if (this.#decoder) this.#decoder.end();
    else this.#end();
  }

  #give(chunk: Uint8Array): void {
    if (this.#phase === "over") return;
    this.bytesReceived += chunk.length;
    this.#listener.data(chunk);
  }

  #end(): void {
    if (this.#phase === "over") return;
    this.#finish();
    this.#listener.end();
  }

  #fail(failed: Failure): void {
    if (this.#phase === "over") return;
    this.abort();
    this.#listener.failed(failed);
  }

  #finish(): void {
    this.#phase = "over";
    this.#cancelStep();
    this.#cancelIdle();
    this.#slot.release();
  }

  #startConnectTimer(): void {
    const { connectMs } = this.#upstream.settings.timeouts;
    this.#limitStep(connectMs, () => failure("connect_timeout", `no connection within ${connectMs} ms`));
  }

  #startReplyTimer(): void {
    const { firstByteMs, wholeMs } = this.#upstream.settings.timeouts;
    if (this.#isStream) {
      this.#limitStep(firstByteMs, () =>
        failure("first_byte_timeout", `no byte of an answer within ${firstByteMs} ms`),
      );
    } else this.#limitStep(wholeMs, () => failure("whole_timeout", `no whole answer within ${wholeMs} ms`));
  }

  /** One timer for each step in place of the one before it: the request's own end comes with it, where that is earlier. */
  #limitStep(ms: number, failed: () => Failure): void {
    this.#cancelStep();
    const restMs = Math.max(0, this.#deadlineMs - this.#clock.monotonicMs());
    this.#cancelStep =
      restMs <= ms
        ? this.#clock.after(restMs, () => this.#timedOut(DEADLINE))
        : this.#clock.after(ms, () => this.#timedOut(failed()));
  }

  #noteFirstByte(): void {
    this.firstByteMs = this.#lastByteMs;
    this.#isUnwatched = true;
    if (this.#isStream) this.#limitStep(Number.POSITIVE_INFINITY, () => DEADLINE);
  }

  /** One timer for many chunks: it looks at the last byte's time when it fires and sleeps for the rest. */
  #watchIdle(waitMs: number): void {
    this.#isUnwatched = false;
    this.#cancelIdle = this.#clock.after(waitMs, () => {
      this.catchUp();
      if (this.#phase === "over") return;
      const { idleMs } = this.#upstream.settings.timeouts;
      const restMs = this.#lastByteMs + idleMs - this.#clock.monotonicMs();
      if (this.#paused || this.#choked) this.#watchIdle(idleMs);
      else if (restMs > 0) this.#watchIdle(restMs);
      else this.#fail(failure("idle_timeout", `${idleMs} ms of silence inside the body`));
    });
  }

  #openDecoder(encoding: NonNullable<ReplyHead["encoding"]>): Decoder {
    return new Decoder(encoding, {
      data: (chunk) => this.#give(chunk),
      drained: () => this.#unchoke(),
      end: () => this.#end(),
      failed: (reason) => this.#fail(failure("bad_encoding", reason)),
    });
  }

  #unchoke(): void {
    this.#choked = false;
    this.#lastByteMs = this.#clock.monotonicMs();
    if (!this.#paused && this.#phase !== "over") this.#controller?.resume();
  }
}
