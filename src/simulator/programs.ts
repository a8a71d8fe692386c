/** Behaviors that tests have programmed for the next requests. */

import type { Behavior } from "./behavior.ts";
import type { SeenRequest } from "./seen.ts";

export interface ProgramOptions {
  /** Number of requests that it answers, default 1; `Infinity` makes it the default for all that follow. */
  readonly times?: number;
  /** The requests that it applies to; default: those on the three model paths. */
  readonly when?: (seen: SeenRequest) => boolean;
}

interface Program {
  readonly behavior: Behavior;
  readonly when: ((seen: SeenRequest) => boolean) | undefined;
  timesLeft: number;
}

export interface ProgrammedBehavior {
  /** From a program with a count. */
  readonly once: Behavior | undefined;
  /** From the newest program that is always on. */
  readonly always: Behavior | undefined;
}

/** The most programs in the queue; a test with more of them has a mistake. */
const PROGRAMS_MAX = 10_000;

/** A queue of behaviors: first those with a count, in their order, then the newest of those that are always on. */
export class Programs {
  #queue: Program[] = [];

  /** @throws RangeError if the queue already has PROGRAMS_MAX programs. */
  add(behavior: Behavior, { times = 1, when }: ProgramOptions = {}): void {
    if (this.#queue.length >= PROGRAMS_MAX) throw new RangeError("too many programs are waiting");
    this.#queue.push({ behavior, when, timesLeft: times });
  }

  /** Removes all programs. */
  clear(): void {
    this.#queue = [];
  }

  /**
   * Takes the programs that apply to this request. @param isModelRequest whether its path is one of the three model
   * paths.
   */
  take(seen: SeenRequest, isModelRequest: boolean): ProgrammedBehavior {
    const applies = ({ when }: Program) => (when ? when(seen) : isModelRequest);
    const counted = this.#queue.find((program) => program.timesLeft !== Infinity && applies(program));
    const always = this.#queue.findLast((program) => program.timesLeft === Infinity && applies(program));
    if (counted) {
      counted.timesLeft -= 1;
      if (counted.timesLeft <= 0) this.#queue = this.#queue.filter((program) => program !== counted);
    }
    return { once: counted?.behavior, always: always?.behavior };
  }
}
