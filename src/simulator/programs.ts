/** What tests have programmed the simulator to do with coming requests. */

import type { Behaviour } from "./behaviour.ts";
import type { SeenRequest } from "./seen.ts";

export interface ProgramOptions {
  /** How many requests it answers, default 1; `Infinity` makes it the default for all that follow. */
  readonly times?: number;
  /** Which requests it is for; default: those on the three model paths. */
  readonly when?: (seen: SeenRequest) => boolean;
}

interface Program {
  readonly behaviour: Behaviour;
  readonly when: ((seen: SeenRequest) => boolean) | undefined;
  timesLeft: number;
}

export interface ProgrammedBehaviour {
  /** From a program with a count. */
  readonly once: Behaviour | undefined;
  /** From the newest program that is always on. */
  readonly always: Behaviour | undefined;
}

/** Most programs that may wait; a test that leaves more of them has lost count. */
const PROGRAMS_MAX = 10_000;

/** A queue of behaviours: those with a count in the order given, then the newest of those that are always on. */
export class Programs {
  #queue: Program[] = [];

  /** @throws RangeError when PROGRAMS_MAX programs are waiting. */
  add(behaviour: Behaviour, { times = 1, when }: ProgramOptions = {}): void {
    if (this.#queue.length >= PROGRAMS_MAX) throw new RangeError("too many programs are waiting");
    this.#queue.push({ behaviour, when, timesLeft: times });
  }

  /** Forgets all programs. */
  clear(): void {
    this.#queue = [];
  }

  /** Takes what applies to this request; `isModelRequest` is about its path. */
  take(seen: SeenRequest, isModelRequest: boolean): ProgrammedBehaviour {
    const applies = ({ when }: Program) => (when ? when(seen) : isModelRequest);
    const counted = this.#queue.find((program) => program.timesLeft !== Infinity && applies(program));
    const always = this.#queue.findLast((program) => program.timesLeft === Infinity && applies(program));
    if (counted) {
      counted.timesLeft -= 1;
      if (counted.timesLeft <= 0) this.#queue = this.#queue.filter((program) => program !== counted);
    }
    return { once: counted?.behaviour, always: always?.behaviour };
  }
}
