/**
 * An idle timer: calls back whenever a stream has been silent for an interval, until it is stopped (ARCHITECTURE.md
 * promise 8).
 */
import type { Clock } from "../values/time.ts";

/** One timer for many frames: when it fires, it checks the time of the last frame and sleeps for the rest. */
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
