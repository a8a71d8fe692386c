/**
 * Steps of many requests, taken one after another at the end of a turn of the event loop. A request that goes its whole way alone
 * finds the processor's caches full of what the steps of the request before it needed last; the same step of ten requests in a row
 * finds its own (docs/decisions/the-same-step-of-many-requests-goes-together.md).
 */
import { afterTurn, type Clock } from "./time.ts";

export class Cohort {
  readonly #clock: Clock;
  #steps: (() => void)[] = [];
  #running = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves at the end of this turn of the event loop, together with all who have asked in it, in the order in which they did. */
  join(): Promise<void> {
    return new Promise((resolve) => this.add(resolve));
  }

  /** Runs `step` at the end of this turn of the event loop, after those that were added before it. */
  add(step: () => void): void {
    if (this.#steps.push(step) === 1) afterTurn(this.#clock, () => this.flush());
  }

  /** Runs the steps that wait, for one who can hold no more of them. Without effect while steps run: the order is kept. */
  flush(): void {
    if (this.#running) return;
    const steps = this.#steps;
    this.#steps = [];
    this.#running = true;
    let taken = 0;
    try {
      while (taken < steps.length) steps[taken++]?.();
    } finally {
      this.#running = false;
      // A defect of one step takes nothing from the others.
      if (taken < steps.length) this.#putBack(steps.slice(taken));
    }
  }

  #putBack(steps: readonly (() => void)[]): void {
    const isScheduled = this.#steps.length > 0;
    this.#steps = [...steps, ...this.#steps];
    if (!isScheduled) afterTurn(this.#clock, () => this.flush());
  }
}
