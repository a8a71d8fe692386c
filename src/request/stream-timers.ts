/** The timers of a relayed stream: its heartbeats, and how long its client may hold it back. */
import type { Clock } from "../values/time.ts";

/**
 * Calls back whenever a stream has been silent for an interval, until it is stopped (ARCHITECTURE.md promise 8). One
 * timer for many frames: when it fires, it checks the time of the last frame and sleeps for the rest.
 */
export class IdleTimer {
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #onSilence: () => void;
  #lastMs: number;
  #cancel: () => void;

  /** Starts at once. @param onSilence called after each `everyMs` without `touch`. */
  constructor(clock: Clock, everyMs: number, onSilence: () => void) {
    this.#clock = clock;
    this.#everyMs = everyMs;
    this.#onSilence = onSilence;
    this.#lastMs = clock.monotonicMs();
    this.#cancel = this.#after(everyMs);
  }

  /** The client has received something. */
  touch(nowMs: number): void {
    this.#lastMs = nowMs;
  }

  stop(): void {
    this.#cancel();
  }

  #after(waitMs: number): () => void {
    return this.#clock.after(waitMs, () => {
      const nowMs = this.#clock.monotonicMs();
      const restMs = this.#lastMs + this.#everyMs - nowMs;
      this.#cancel = this.#after(restMs > 0 ? restMs : this.#everyMs);
      if (restMs > 0) return;
      this.touch(nowMs);
      this.#onSilence();
    });
  }
}

/** Longest total time for which a client may hold back a stream that its upstream keeps. */
export const KEPT_HELD_BACK_MS_MAX = 60_000;

/**
 * Limits how long a client holds back a stream by reading slowly, in total. A server that keeps the answer may write on
 * meanwhile, and what the gateway has not read when the request's time is over would be free to retrieve
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
export class HeldBack {
  readonly #clock: Pick<Clock, "after" | "monotonicMs">;
  readonly #onOver: () => void;
  #restMs: number;
  #sinceMs = 0;
  #cancel: (() => void) | undefined;

  /** @param onOver called once the client has held back the stream for `maxMs` in total. */
  constructor(clock: Pick<Clock, "after" | "monotonicMs">, maxMs: number, onOver: () => void) {
    this.#clock = clock;
    this.#restMs = maxMs;
    this.#onOver = onOver;
  }

  /** The client accepts no more. */
  begin(nowMs: number): void {
    if (this.#cancel) return;
    this.#sinceMs = nowMs;
    this.#cancel = this.#clock.after(this.#restMs, this.#onOver);
  }

  /** The client reads again, or its stream is over. */
  end(): void {
    if (!this.#cancel) return;
    this.#cancel();
    this.#cancel = undefined;
    this.#restMs = Math.max(0, this.#restMs - (this.#clock.monotonicMs() - this.#sinceMs));
  }
}
