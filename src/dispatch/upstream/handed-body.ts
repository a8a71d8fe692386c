/**
 * The rest of a stream after it was accepted: a small buffer between the upstream and the reader. It guarantees the
 * order: data, then exactly one end or error, then nothing. It holds nothing of the request, which may be large and is
 * not retried any more.
 */
import assert from "node:assert/strict";
import type { BodySink, ReplyFault, UpstreamBody } from "../ask.ts";
import { type Failure, failureOfError, faultOf } from "../failure.ts";
import type { Call, CallListener } from "./call.ts";

/** Bytes that are buffered here before the upstream is stopped, in addition to undici's socket buffer (64 KiB). */
export const BUFFERED_BYTES_MAX = 64 * 1024;

export class HandedBody implements UpstreamBody, CallListener {
  readonly #call: Call;
  readonly #onBroken: (failed: Failure) => void;
  readonly #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #sink: BodySink | undefined = undefined;
  #paused = false;
  #firmly = false;
  #flushing = false;
  /** What is delivered once the buffer is empty. */
  #ending: "end" | ReplyFault | undefined = undefined;
  #over = false;

  /** @param onBroken called when an accepted stream has broken off. */
  constructor(call: Call, onBroken: (failed: Failure) => void) {
    this.#call = call;
    this.#onBroken = onBroken;
  }

  get bytesReceived(): number {
    return this.#call.bytesReceived;
  }

  consume(sink: BodySink): void {
    assert(this.#sink === undefined, "a body is consumed once");
    this.#sink = sink;
    this.#flush();
  }

  pause(firmly = false): void {
    this.#paused = true;
    this.#firmly = firmly;
    this.#flush();
  }

  resume(): void {
    this.#paused = false;
    this.#flush();
  }

  abort(): void {
    this.#forget();
    this.#call.abort();
  }

  discardRest(): void {
    this.#forget();
    this.#call.discardRest();
  }

  onSilence(isWorking: () => Promise<boolean>): void {
    this.#call.isWorking = isWorking;
  }

  #forget(): void {
    this.#over = true;
    this.#waiting.length = 0;
    this.#waitingBytes = 0;
  }

  /** It came before the first byte. */
  head(): void {}

  /** More bytes from the upstream. */
  data(chunk: Uint8Array): void {
    if (this.#over) return;
    assert(this.#ending === undefined, "no data after the end");
    if (this.#open() && this.#waiting.length === 0) {
      this.#sink?.data(chunk);
      return;
    }
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    if (this.#waitingBytes >= BUFFERED_BYTES_MAX) this.#call.pause();
  }

  /** The upstream's last byte has arrived. */
  end(): void {
    this.#finish("end");
  }

  failed(failed: Failure): void {
    this.#onBroken(failed);
    this.#finish(faultOf(failed));
  }

  defect(error: unknown): void {
    this.failed(failureOfError(error));
  }

  /**
   * The body is over. Buffered bytes are delivered at once, even if the sink has paused (unless firmly), because
   * nothing comes after them: a client that does not read must not keep its own bill open.
   */
  #finish(ending: "end" | ReplyFault): void {
    assert(this.#ending === undefined, "one end only");
    this.#ending = ending;
    this.#flush();
  }

  #open(): boolean {
    return this.#sink !== undefined && !this.#isPaused && !this.#over && !this.#flushing;
  }

  get #isPaused(): boolean {
    return this.#paused && (this.#firmly || this.#ending === undefined);
  }

  /** Delivers buffered bytes until the sink pauses; then resumes the upstream, or ends. */
  #flush(): void {
    if (!this.#open()) return;
    this.#flushing = true;
    let given = 0;
    while (given < this.#waiting.length && !this.#isPaused && !this.#over) {
      const chunk = this.#waiting[given++] as Uint8Array;
      this.#waitingBytes -= chunk.length;
      this.#sink?.data(chunk);
    }
    if (!this.#over) this.#waiting.splice(0, given);
    this.#flushing = false;
    if (this.#isPaused || this.#over) return;
    if (this.#ending === undefined) this.#call.resume();
    else this.#close(this.#ending);
  }

  #close(ending: "end" | ReplyFault): void {
    this.#over = true;
    if (ending === "end") this.#sink?.end();
    else this.#sink?.error(ending);
  }
}
