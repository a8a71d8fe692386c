/**
 * One HTTP exchange with an upstream: puts undici's events in order, applies the timeouts and decompresses. Whatever
 * the upstream does, the listener gets at most one head, then data, then exactly one end or failure, then nothing.
 *
 * What undici reads in a turn of the event loop is processed at the end of the turn, for all calls one after another.
 * Before a timer or a disconnected client ends the call, pending events are processed first.
 */
import assert from "node:assert/strict";
import type { HeaderEdits } from "../../values/rules.ts";
import type { Clock, Cohort } from "../../values/time.ts";
import { type Failure, failure, failureOfError } from "../failure.ts";
import { CallLimits } from "./call-limits.ts";
import { Decoder } from "./decoder.ts";
import { isFailure, type ReplyFields, type ReplyHead, readReplyHead } from "./reply-head.ts";
import type { Slot } from "./slots.ts";
import type { Upstream, UpstreamController, UpstreamHandler } from "./upstream.ts";

export interface CallListener {
  head(head: ReplyHead): void;
  data(chunk: Uint8Array): void;
  end(): void;
  failed(failed: Failure): void;
  /** One of the methods above has thrown; the call has been aborted. */
  defect(error: unknown): void;
}

interface CallRequest {
  readonly stream: boolean;
  /** Appended to the path of the upstream's protocol; empty for its model path. */
  readonly pathSuffix: string;
  readonly method: "POST" | "GET" | "DELETE";
  readonly query: string | undefined;
  /** Empty: the request has no body. */
  readonly body: Uint8Array;
  readonly headers: readonly (readonly [string, string])[];
  readonly headerEdits: readonly HeaderEdits[];
  /** On the clock's `monotonicMs`. */
  readonly deadlineMs: number;
}

const ABORTED = new Error("aborted by the gateway");

/**
 * How much, and for how long, an upstream may still send after the end of an answer before its connection is closed.
 */
const DISCARD_BYTES_MAX = 64 * 1024;
const DISCARD_MS_MAX = 1_000;

/** Up to this size, data of one turn waits for its end; beyond it, data is processed at once. */
const WAITING_BYTES_MAX = 64 * 1024;

/** Chunks of one turn are joined up to this total; beyond it, copying costs more than it saves. */
const JOINED_BYTES_MAX = 2 * 1024;

/** An event from the upstream: bytes of a body, or another part of an answer. The head itself is stored separately. */
type UpstreamEvent = Buffer | "head" | "end" | Error;

export class Call implements UpstreamHandler {
  startedAtMs = 0;
  firstByteMs: number | undefined = undefined;
  /** Decoded body bytes delivered to the listener. */
  bytesReceived = 0;
  /** Whether the request was put on a connection. */
  sent = false;
  /** Asked before a silent body fails; undefined: it fails at once. */
  isWorking: (() => Promise<boolean>) | undefined = undefined;

  readonly #upstream: Upstream;
  readonly #slot: Slot;
  readonly #clock: Clock;
  readonly #cohort: Cohort;
  #listener: CallListener;
  #isStream = false;
  #controller: UpstreamController | undefined = undefined;
  #cancelDiscard: () => void = () => {};
  #discardedBytes = 0;
  /** Bytes received in the current turn that are not processed yet. */
  #waitingBytes = 0;
  #waiting: UpstreamEvent[] | undefined;
  #status = 0;
  #fields: ReplyFields | undefined = undefined;
  /** Created once, because it is needed in each turn in which the upstream sends something. */
  readonly #look = () => this.catchUp();
  #isCatchingUp = false;
  #decoder: Decoder | undefined = undefined;
  #phase: "connecting" | "waiting" | "body" | "over" = "connecting";
  #paused = false;
  #choked = false;
  #deadlineMs = 0;
  readonly #limits: CallLimits;
  /** Whether a body has begun and is not yet checked for silence. */
  #isUnwatched = false;

  /**
   * @param slot the call's slot at the upstream, released when the upstream has sent everything, or when the call is
   *   over.
   */
  constructor(upstream: Upstream, slot: Slot, clock: Clock, cohort: Cohort, listener: CallListener) {
    this.#upstream = upstream;
    this.#slot = slot;
    this.#clock = clock;
    this.#cohort = cohort;
    this.#listener = listener;
    this.#limits = new CallLimits(upstream.settings.timeouts, clock, this);
  }

  /** Sends the request; once only. The request is not kept: it can be large, and reading the answer may take long. */
  start(request: CallRequest): void {
    this.#isStream = request.stream;
    this.startedAtMs = this.#clock.monotonicMs();
    this.#deadlineMs = request.deadlineMs;
    try {
      this.#upstream.send(request, this, this.startedAtMs);
    } catch (error) {
      this.#fail(failureOfError(error));
    }
    // Usually true: undici checks a kept connection once more before it puts the request on it (`onRequestStart`).
    if (this.#phase === "connecting") this.#limits.connecting(this.#deadlineMs, this.startedAtMs);
  }

  /** Whether the reply is complete, failed or aborted. */
  get over(): boolean {
    return this.#phase === "over";
  }

  /** Whether the gateway has paused reading. */
  get held(): boolean {
    return this.#paused || this.#choked;
  }

  /** Replaces the listener; no reference to the previous one is kept. */
  handTo(listener: CallListener): void {
    this.#listener = listener;
  }

  /** Ends the call in this same tick: the connection is destroyed, and the listener is not called again. */
  abort(): void {
    if (this.#phase === "over") return;
    this.#finish();
    this.#controller?.abort(ABORTED);
    this.#decoder?.destroy();
  }

  /**
   * The rest is not needed. It is read and discarded, so that the connection can serve the next request, but only a
   * little and not for long. The listener is not called again.
   */
  discardRest(): void {
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

  /**
   * Stops the flow. What undici has already read may still arrive: a socket buffer, and what waits for the end of the
   * turn.
   */
  pause(): void {
    if (this.#phase === "over" || this.#paused) return;
    this.#paused = true;
    this.#decoder?.pause();
    this.#controller?.pause();
  }

  resume(): void {
    if (this.#phase === "over" || !this.#paused) return;
    this.#paused = false;
    // The silence while reading was paused is not the upstream's.
    this.#limits.heard(this.#clock.monotonicMs());
    this.#decoder?.resume();
    if (!this.#choked) this.#controller?.resume();
  }

  /** The answer has begun: from here on, only this end and silence limit it. @param endMs on the clock's `monotonicMs`. */
  endBy(endMs: number): void {
    this.#limits.endBy(endMs);
  }

  onRequestStart(controller: UpstreamController): void {
    this.#controller = controller;
    if (this.#phase === "over") {
      // Aborted while connecting: undici writes nothing of a request that is aborted here.
      controller.abort(ABORTED);
      return;
    }
    assert.equal(this.#phase, "connecting");
    this.#phase = "waiting";
    this.sent = true;
    this.#limits.sent(this.#isStream, this.#deadlineMs, this.#clock.monotonicMs());
  }

  onResponseStart(controller: UpstreamController, status: number, fields: ReplyFields): void {
    // The raw headers are slices of the whole chunk in which they arrived, up to 64 KB, and undici keeps them until the
    // end.
    controller.rawHeaders = null;
    // 1xx come before the head of an answer (RFC 9110 section 15.2). There is only one head, so it needs no place in
    // the list.
    if (status < 200) return;
    this.#status = status;
    this.#fields = fields;
    this.#atEndOfTurn("head");
  }

  onResponseData(_controller: UpstreamController, chunk: Buffer): void {
    this.#waitingBytes += chunk.length;
    this.#atEndOfTurn(chunk);
    // What an upstream sends in one turn has no limit of its own.
    if (this.#waitingBytes >= WAITING_BYTES_MAX) this.catchUp();
  }

  onResponseEnd(): void {
    this.#atEndOfTurn("end");
  }

  onResponseError(_controller: UpstreamController, error: Error): void {
    this.#atEndOfTurn(error);
  }

  #atEndOfTurn(event: UpstreamEvent): void {
    if (this.#waiting) {
      this.#waiting.push(event);
      return;
    }
    this.#waiting = [event];
    this.#cohort.add(this.#look);
  }

  /** Processes what the upstream has sent in this turn. Must be called before the call is ended for another reason. */
  catchUp(): void {
    // Events that undici emits while one is processed come after it.
    if (this.#isCatchingUp || !this.#waiting) return;
    const all = this.#waiting;
    this.#waiting = undefined;
    this.#isCatchingUp = true;
    // All of it had arrived when the turn ended, so the clock is read once.
    const nowMs = this.#clock.monotonicMs();
    try {
      for (let next = 0; next < all.length; ) next = this.#lookAt(all, next, nowMs);
    } catch (defect) {
      this.abort();
      this.#listener.defect(defect);
    } finally {
      this.#isCatchingUp = false;
    }
    // Usually a whole answer arrives in one turn: only a body that continues is checked for silence.
    if (!this.#isUnwatched || this.#phase !== "body") return;
    this.#isUnwatched = false;
    this.#limits.watchSilence(nowMs);
  }

  /** Processes one event; small consecutive chunks are joined into one. @returns the index of the next event. */
  #lookAt(all: readonly UpstreamEvent[], from: number, nowMs: number): number {
    const event = all[from] as UpstreamEvent;
    if (!Buffer.isBuffer(event)) {
      if (event === "head") this.#started();
      else if (event === "end") this.#ended(nowMs);
      else this.#broken(event);
      return from + 1;
    }
    let end = from + 1;
    for (let bytes = event.length; end < all.length; end++) {
      const more = all[end] as UpstreamEvent;
      if (!Buffer.isBuffer(more) || bytes + more.length > JOINED_BYTES_MAX) break;
      bytes += more.length;
    }
    this.#received(end === from + 1 ? event : Buffer.concat(all.slice(from, end) as Buffer[]), nowMs);
    return end;
  }

  /** A limit has expired: the call ends as failed. */
  timedOut(failed: Failure): void {
    this.#fail(failed);
  }

  #started(): void {
    const fields = this.#fields ?? {};
    this.#fields = undefined;
    if (this.#phase === "over") return;
    assert.equal(this.#phase, "waiting");
    this.#phase = "body";
    const head = readReplyHead(this.#status, fields);
    if (isFailure(head)) {
      this.#fail(head);
      return;
    }
    if (head.encoding) this.#decoder = this.#openDecoder(head.encoding);
    this.#listener.head(head);
  }

  #received(chunk: Buffer, nowMs: number): void {
    this.#waitingBytes -= chunk.length;
    if (this.#phase === "over") {
      this.#discard(chunk.length);
      return;
    }
    assert.equal(this.#phase, "body");
    this.#limits.heard(nowMs);
    if (this.firstByteMs === undefined) {
      this.firstByteMs = nowMs;
      this.#isUnwatched = true;
      if (this.#isStream) this.#limits.streaming();
    }
    if (!this.#decoder) {
      this.#give(chunk);
    } else if (!this.#decoder.write(chunk)) {
      this.#choked = true;
      this.#controller?.pause();
    }
  }

  #ended(nowMs: number): void {
    this.#cancelDiscard();
    if (this.#phase === "over") return;
    this.#isUnwatched = false;
    this.#limits.bodyEnded();
    if (!this.#decoder) {
      this.#end(nowMs);
      return;
    }
    // Decompression of the rest may wait for a slow client; the upstream is no longer involved.
    this.#slot.release(nowMs);
    this.#decoder.end();
  }

  #broken(error: Error): void {
    this.#cancelDiscard();
    this.#fail(failureOfError(error, this.#phase === "connecting" && this.#upstream.speaksTls));
  }

  #give(chunk: Uint8Array): void {
    if (this.#phase === "over") return;
    this.bytesReceived += chunk.length;
    this.#listener.data(chunk);
  }

  #end(nowMs?: number): void {
    if (this.#phase === "over") return;
    this.#finish(nowMs);
    this.#listener.end();
  }

  #fail(failed: Failure): void {
    if (this.#phase === "over") return;
    this.abort();
    this.#listener.failed(failed);
  }

  #finish(nowMs = this.#clock.monotonicMs()): void {
    this.#phase = "over";
    this.#limits.stop();
    this.#slot.release(nowMs);
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
    this.#limits.heard(this.#clock.monotonicMs());
    if (!this.#paused && this.#phase !== "over") this.#controller?.resume();
  }
}
