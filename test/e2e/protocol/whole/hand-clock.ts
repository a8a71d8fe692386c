/**
 * A clock that does not move until a test moves it. Only waits of a few milliseconds pass by themselves, such as the
 * one in which the journal collects records before it syncs: otherwise nothing would ever become durable.
 */
import { type Clock, systemClock } from "../../../../src/values/time.ts";

const PASSES_BY_ITSELF_MS = 100;

interface Timer {
  readonly atMs: number;
  readonly task: () => void;
}

export class HandClock implements Clock {
  #nowMs = 1_000_000;
  readonly #startedWallMs = Date.now();
  readonly #timers = new Set<Timer>();
  readonly #asked = new Map<number, PromiseWithResolvers<void>>();

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#startedWallMs + this.#nowMs - 1_000_000;
  }

  after(ms: number, task: () => void): () => void {
    this.#askedFor(ms).resolve();
    if (ms <= PASSES_BY_ITSELF_MS) return systemClock.after(ms, task);
    const timer = { atMs: this.#nowMs + ms, task };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Resolves when the code under test has set a timer of exactly this length. */
  timerOf(ms: number): Promise<void> {
    return this.#askedFor(ms).promise;
  }

  /** Resolves when such a timer is set again. */
  nextTimerOf(ms: number): Promise<void> {
    this.#asked.delete(ms);
    return this.timerOf(ms);
  }

  #askedFor(ms: number): PromiseWithResolvers<void> {
    const asked = this.#asked.get(ms) ?? Promise.withResolvers<void>();
    this.#asked.set(ms, asked);
    return asked;
  }

  /** Advances the time; timers that become due run in order. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms;
    for (;;) {
      const due = [...this.#timers].filter((timer) => timer.atMs <= endMs).sort((a, b) => a.atMs - b.atMs)[0];
      if (!due) break;
      this.#timers.delete(due);
      this.#nowMs = Math.max(this.#nowMs, due.atMs);
      due.task();
    }
    this.#nowMs = endMs;
  }
}
