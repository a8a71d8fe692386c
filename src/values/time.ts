/** Time is always an argument, never a global: stages take a `Clock`, tests pass a fake one. */

import process from "node:process";

/** The clock of a stage. `monotonicMs` is for latencies and timers, `wallMs` for dates shown to people. */
export interface Clock {
  /** Milliseconds since an arbitrary start; never jumps. */
  monotonicMs(): number;
  /** Milliseconds since the Unix epoch; may jump. */
  wallMs(): number;
  /** Runs `task` once after `ms`; the result cancels it. Does not keep the process alive. */
  after(ms: number, task: () => void): () => void;
  /** Runs `task` once, after this turn of the event loop; the result cancels it. See `afterTurn`. */
  afterTurn?(task: () => void): () => void;
  /** Total delay of this process itself, in milliseconds. See `ownDelayMs`. */
  ownDelayMs?(): number;
}

/**
 * Total delay of this process itself so far, in milliseconds: from its own long turns, or from waiting for a CPU core.
 * The difference between two calls is the part of the time between them that was this process's own delay. 0 with a
 * test clock that does not measure it.
 */
export function ownDelayMs(clock: Clock): number {
  return clock.ownDelayMs?.() ?? 0;
}

/**
 * Runs `task` after everything that arrived in this turn of the event loop. Uses the clock's own turns if it has any (a
 * simulation), else the machine's. The result cancels it.
 */
export function afterTurn(clock: Clock, task: () => void): () => void {
  if (clock.afterTurn) return clock.afterTurn(task);
  const immediate = setImmediate(task);
  return () => clearImmediate(immediate);
}

/**
 * Runs `task` after everything that is ready, before the event loop checks its sockets again. With a clock that has its
 * own turns, at the end of its turn. The result cancels it.
 */
export function afterReady(clock: Clock, task: () => void): () => void {
  if (clock.afterTurn) return clock.afterTurn(task);
  let isWanted = true;
  // Node runs these when no promise continuation is left.
  process.nextTick(() => {
    if (isWanted) task();
  });
  return () => {
    isWanted = false;
  };
}

/**
 * Runs the same step of many requests one after another, at the end of a turn of the event loop. If each request ran
 * its whole path alone, it would find the processor's caches full of what others needed last. The same step of ten
 * requests in a row finds its own data (docs/decisions/the-same-step-of-many-requests-goes-together.md).
 */
export class Cohort {
  readonly #clock: Clock;
  #steps: (() => void)[] = [];
  /** For all who join in this turn. */
  #joined: Promise<void> | undefined = undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves at the end of this turn of the event loop, together with all other calls in the turn, in the order of the
   * calls.
   */
  join(): Promise<void> {
    // One promise for all: their continuations run in the order of the calls, after all steps of the turn.
    this.#joined ??= new Promise((resolve) => this.add(resolve));
    return this.#joined;
  }

  /** Runs `step` at the end of this turn of the event loop, after those that were added earlier. */
  add(step: () => void): void {
    if (this.#steps.push(step) === 1) this.#runLater();
  }

  #runLater(): void {
    afterTurn(this.#clock, () => this.#run());
  }

  #run(): void {
    const steps = this.#steps;
    this.#steps = [];
    this.#joined = undefined;
    let taken = 0;
    try {
      while (taken < steps.length) steps[taken++]?.();
    } finally {
      // A defect in one step must not stop the others.
      if (taken < steps.length) {
        if (this.#steps.length === 0) this.#runLater();
        this.#steps.unshift(...steps.slice(taken));
      }
    }
  }
}

/** Interval at which a process checks its own delay. */
const BEAT_MS = 20;
/** Normal delay of a timer. */
const PUNCTUAL_MS = 5;
/** After this many beats without a call it stops, so that an idle process sleeps. */
const BEATS_UNASKED_MAX = 50;

/** Measures how late its own timer is, as long as it is read from time to time. */
export class OwnDelay {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  #delayMs = 0;
  #dueMs: number | undefined;
  #unasked = 0;

  constructor(clock: Pick<Clock, "monotonicMs" | "after">) {
    this.#clock = clock;
  }

  /** Milliseconds so far, including the current delay, because sockets may be read before timers run. */
  get totalMs(): number {
    this.#unasked = 0;
    const nowMs = this.#clock.monotonicMs();
    if (this.#dueMs === undefined) this.#wait(nowMs);
    return this.#delayMs + this.#lateMs(nowMs);
  }

  #lateMs(nowMs: number): number {
    const lateMs = nowMs - (this.#dueMs ?? nowMs);
    return lateMs > PUNCTUAL_MS ? lateMs : 0;
  }

  #wait(nowMs: number): void {
    this.#dueMs = nowMs + BEAT_MS;
    this.#clock.after(BEAT_MS, () => this.#beat());
  }

  #beat(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#delayMs += this.#lateMs(nowMs);
    this.#dueMs = undefined;
    if (++this.#unasked <= BEATS_UNASKED_MAX) this.#wait(nowMs);
  }
}

/** The machine's clock. Bound, because `performance` is looked up again each time it is named (17 of 80 ns). */
export const systemClock: Clock = {
  ownDelayMs: () => ownDelay.totalMs,
  monotonicMs: performance.now.bind(performance),
  wallMs: () => Date.now(),
  after(ms, task) {
    const timer = setTimeout(task, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

const ownDelay = new OwnDelay(systemClock);

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Reads a duration in the notation of the configuration: a whole number and a unit (`ms s m h d`).
 * @returns milliseconds, or undefined if the text is not a duration.
 */
export function parseDurationMs(text: string): number | undefined {
  const match = /^(0|[1-9][0-9]{0,8})(ms|s|m|h|d)$/.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * (UNIT_MS[match[2] as string] as number);
}

const DAY_MS = 86_400_000;
/** The last result, because most requests are on the same day. */
let lastDay = { number: Number.NaN, text: "" };

/** The UTC day of an instant, `YYYY-MM-DD`; daily sums are stored under it. */
export function utcDay(epochMs: number): string {
  const number = Math.floor(epochMs / DAY_MS);
  if (number !== lastDay.number) lastDay = { number, text: new Date(epochMs).toISOString().slice(0, 10) };
  return lastDay.text;
}
