/** Chance that a seed decides: each part of the world has a stream of its own, so that a change of one leaves the others. */
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

  /** True in a share of the cases. */
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

  /** Mostly near `from`, now and then far towards `to`: waits and sizes as they are in the world. */
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
