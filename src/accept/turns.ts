/**
 * Shares the event loop between readers of large bodies: a reader runs for a few milliseconds, then everything that has
 * arrived in the meantime is served, then the next reader runs. One turn of the loop runs one reader, however many
 * there are.
 */
import type { Pause } from "../wire/json.ts";

/** How long a reader may run before others have their turn. */
const TURN_MS = 4;

export class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #turnMs: number;
  #scheduled = false;

  constructor(turnMs = TURN_MS) {
    this.#turnMs = turnMs;
  }

  /** Resolves at the caller's turn, after those who asked earlier. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  /**
   * For one reader, from the start of its turn. The returned function gives undefined while the turn lasts, then a
   * promise of the next turn.
   */
  pace(): Pause {
    let sinceMs = performance.now();
    return () => {
      if (performance.now() - sinceMs < this.#turnMs) return undefined;
      return this.next().then(() => {
        sinceMs = performance.now();
      });
    };
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#waiting.shift()?.();
      if (this.#waiting.length > 0) this.#schedule();
    });
  }
}

/** The turns of this process, which has one event loop. */
export const TURNS = new Turns();
