/**
 * A random generator with a seed. Each part of the simulation has its own stream, so that a change in one part does not
 * change the others.
 */
import { seeded } from "../../unit/settle/rig.ts";

export class Chance {
  /** In [0, 1). */
  readonly next: () => number;
  readonly #seed: number;

  constructor(seed: number) {
    this.#seed = seed;
    this.next = seeded(seed);
  }

  /** Another stream of the same seed. */
  fork(name: string): Chance {
    let mixed = this.#seed ^ 0x9e3779b9;
    for (const letter of name) mixed = Math.imul(mixed ^ letter.charCodeAt(0), 0x01000193) ^ (mixed >>> 13);
    return new Chance(mixed >>> 0);
  }

  /** True with the given probability. */
  is(share: number): boolean {
    return this.next() < share;
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  between(from: number, to: number): number {
    return from + this.next() * (to - from);
  }

  /** Mostly near `from` and sometimes far towards `to`, as waits and sizes are in practice. */
  skewed(from: number, to: number): number {
    return from * (to / from) ** (this.next() ** 2);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }

  bytes(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.below(256));
  }
}
