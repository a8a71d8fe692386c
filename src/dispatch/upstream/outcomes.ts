/** Recent outcomes of the attempts at one upstream, counted by kind in a sliding window of six steps. */

/**
 * The effect of an attempt on its upstream's health. `local`: observed on our side (connect, reset, timeout). `remote`:
 * reported or caused by the server (5xx, 529, a broken reply). 429, refused credentials, and a path or model that it
 * does not have (404, 405) are neither.
 */
const OUTCOME_KINDS = ["ok", "local", "remote", "rate_limited", "forbidden", "not_found"] as const;
export type OutcomeKind = (typeof OUTCOME_KINDS)[number];
export type OutcomeCounts = Readonly<Record<OutcomeKind, number>>;

/** Steps in one window. */
const STEPS = 6;

export class Outcomes {
  readonly #stepMs: number;
  readonly #counts = OUTCOME_KINDS.map(() => new Uint32Array(STEPS));
  /** The current step, in steps since the clock's start. */
  #step = 0;

  constructor(windowMs: number) {
    this.#stepMs = windowMs / STEPS;
  }

  add(kind: OutcomeKind, nowMs: number): void {
    this.#moveTo(nowMs);
    const counts = this.#counts[OUTCOME_KINDS.indexOf(kind)] as Uint32Array;
    counts[this.#step % STEPS] = (counts[this.#step % STEPS] as number) + 1;
  }

  counts(nowMs: number): OutcomeCounts {
    this.#moveTo(nowMs);
    const sums = this.#counts.map((counts) => counts.reduce((sum, count) => sum + count, 0));
    return Object.fromEntries(OUTCOME_KINDS.map((kind, index) => [kind, sums[index]])) as OutcomeCounts;
  }

  /** Starts a new window: earlier outcomes do not count against an upstream that has just returned. */
  clear(): void {
    for (const counts of this.#counts) counts.fill(0);
  }

  #moveTo(nowMs: number): void {
    const step = Math.floor(nowMs / this.#stepMs);
    const passed = Math.min(STEPS, step - this.#step);
    for (let at = 1; at <= passed; at++) for (const counts of this.#counts) counts[(step - passed + at) % STEPS] = 0;
    if (passed > 0) this.#step = step;
  }
}
