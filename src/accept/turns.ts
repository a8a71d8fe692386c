/**
 * How work on large bodies shares the event loop: a reader goes on for a few milliseconds, then everything that has
 * come in meanwhile is served, then the next reader goes on. One turn of the loop runs one of them, with any number of
 * readers.
 */
import type { Pause } from "../wire/json.ts";

/** How long a reader may go on before others have their turn. */
const TURN_MS = 4;

export class Turns {
  readonly #waiting: (() => void)[] = [];
  readonly #turnMs: number;
  #scheduled = false;

  constructor(turnMs = TURN_MS) {
    this.#turnMs = turnMs;
  }

  /** Resolves when it is the caller's turn, after those who have asked before. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  /**
   * For one reader, from the beginning of its turn. The result gives undefined while the turn lasts, then a promise of
   * the next turn.
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

/** Those of this process, which has one event loop. */
export const TURNS = new Turns();
