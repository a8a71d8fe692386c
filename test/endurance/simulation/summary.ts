/** The result of a run over many seeds, as one line of JSON that can be compared with others. */
import type { Result } from "./simulation.ts";

export interface Summary {
  readonly seeds: number;
  readonly histories: number;
  readonly histories_per_second: number;
  readonly faults: Readonly<Record<string, number>>;
  /** Charges that a store had accepted and lost, and how often one was restored, including repeated replays. */
  readonly lost_charges: number;
  readonly replayed: number;
  readonly missing: number;
  readonly double: number;
  readonly below_zero: number;
  readonly out_of_balance: number;
  readonly violations: number;
  readonly failed_seeds: readonly number[];
}

/** The failed seeds that the line names. */
const FAILED_MAX = 20;

export class Tally {
  readonly #counts = new Map<string, number>();
  readonly #byInvariant = new Map<number, number>();
  readonly #failed: Result[] = [];
  #seeds = 0;
  #missing = 0;

  add(result: Result): void {
    this.#seeds++;
    this.#missing += result.missing;
    for (const [what, count] of result.counts) this.#counts.set(what, (this.#counts.get(what) ?? 0) + count);
    for (const { invariant } of result.violations) {
      this.#byInvariant.set(invariant, (this.#byInvariant.get(invariant) ?? 0) + 1);
    }
    if (result.violations.length > 0) this.#failed.push(result);
  }

  get seeds(): number {
    return this.#seeds;
  }

  get failed(): readonly Result[] {
    return this.#failed;
  }

  summary(elapsedMs: number): Summary {
    const count = (what: string): number => this.#counts.get(what) ?? 0;
    const of = (...invariants: number[]): number =>
      invariants.reduce((sum, invariant) => sum + (this.#byInvariant.get(invariant) ?? 0), 0);
    const faults = [...this.#counts].filter(([what]) => what.startsWith("fault ")).sort();
    return {
      seeds: this.#seeds,
      histories: count("admitted"),
      histories_per_second: Math.round(count("admitted") / (elapsedMs / 1_000)),
      faults: Object.fromEntries(faults.map(([what, times]) => [what.slice("fault ".length), times])),
      lost_charges: count("lost_charges"),
      replayed: count("replayed"),
      missing: this.#missing,
      double: of(4, 10, 11) - Math.min(of(4, 10, 11), this.#missing),
      below_zero: of(7),
      out_of_balance: of(1, 2, 3),
      violations: [...this.#byInvariant.values()].reduce((sum, times) => sum + times, 0),
      failed_seeds: this.#failed.slice(0, FAILED_MAX).map(({ seed }) => seed),
    };
  }
}

/** What to look at, and how to reproduce it. */
export function explain({ seed, violations }: Result): string {
  const lines = violations.map(({ invariant, what }) => `  invariant ${invariant}: ${what}`);
  return [`seed ${seed}:`, ...lines, `  again: npm run sim -- --seed ${seed} --trace`].join("\n");
}
