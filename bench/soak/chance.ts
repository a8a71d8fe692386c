/** Repeatable randomness: the same seed gives the same choices. */

export interface Chance {
  /** A number in [0, 1). */
  next(): number;
  /** A whole number from `least` to `most`, both included. */
  between(least: number, most: number): number;
  pick<T>(all: readonly T[]): T;
  /** One of the names, each as often as its weight says. */
  weighted<T extends string>(weights: Readonly<Record<T, number>>): T;
}

/** A generator (mulberry32) for a seed. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1));
  return {
    next,
    between,
    pick: (all) => {
      if (all.length === 0) throw new Error("there is nothing to pick from");
      return all[between(0, all.length - 1)] as (typeof all)[number];
    },
    weighted: (weights) => {
      const entries = Object.entries(weights) as [keyof typeof weights, number][];
      let rest = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) {
        rest -= weight;
        if (rest < 0) return name;
      }
      return (entries.at(-1) as [keyof typeof weights, number])[0];
    },
  };
}
