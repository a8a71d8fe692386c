/**
 * Time comes in as an argument, never from a global: stages take a `Clock`, tests hand in a fake one.
 */

import process from "node:process";

/** What a stage may ask of time. `monotonicMs` is for latencies and timers, `wallMs` for dates shown to people. */
export interface Clock {
  /** Milliseconds since an arbitrary start; never jumps. */
  monotonicMs(): number;
  /** Milliseconds since the Unix epoch; may jump. */
  wallMs(): number;
  /** Runs `task` once after `ms`; the result cancels it. Does not keep the process alive. */
  after(ms: number, task: () => void): () => void;
  /** Runs `task` once this turn of the event loop is over; the result cancels it. See `afterTurn`. */
  afterTurn?(task: () => void): () => void;
  /** How late this process was itself so far, milliseconds. See `ownDelayMs`. */
  ownDelayMs?(): number;
}

/**
 * How late this process was itself so far, milliseconds: by its own long turns, or without a core. The difference between two
 * calls is what of the time between them nobody else is to blame for. 0 by a clock of tests that knows of none.
 */
export function ownDelayMs(clock: Clock): number {
  return clock.ownDelayMs?.() ?? 0;
}

/**
 * Runs `task` after everything that came in with this turn of the event loop, by a clock that has turns of its own (a
 * simulation), else by the machine's. The result cancels it.
 */
export function afterTurn(clock: Clock, task: () => void): () => void {
  if (clock.afterTurn) return clock.afterTurn(task);
  const immediate = setImmediate(task);
  return () => clearImmediate(immediate);
}

/**
 * Runs `task` once all that is ready has run, before the event loop looks at its sockets again; by a clock that has turns of its
 * own, at the end of its turn. The result cancels it.
 */
export function afterReady(clock: Clock, task: () => void): () => void {
  if (clock.afterTurn) return clock.afterTurn(task);
  let isWanted = true;
  // Node runs these when no continuation of a promise is left.
  process.nextTick(() => {
    if (isWanted) task();
  });
  return () => {
    isWanted = false;
  };
}

/**
 * Steps of many requests, taken one after another at the end of a turn of the event loop. A request that goes its whole way alone
 * finds the processor's caches full of what others needed last; the same step of ten requests in a row finds its own
 * (docs/decisions/the-same-step-of-many-requests-goes-together.md).
 */
export class Cohort {
  readonly #clock: Clock;
  #steps: (() => void)[] = [];
  /** Of this turn, for all who join in it. */
  #joined: Promise<void> | undefined = undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves at the end of this turn of the event loop, together with all who have asked in it, in the order in which they did. */
  join(): Promise<void> {
    // One promise for all: their continuations run in the order in which they asked, after all steps of the turn.
    this.#joined ??= new Promise((resolve) => this.add(resolve));
    return this.#joined;
  }

  /** Runs `step` at the end of this turn of the event loop, after those that were added before it. */
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
      // A defect of one step takes nothing from the others.
      if (taken < steps.length) {
        if (this.#steps.length === 0) this.#runLater();
        this.#steps.unshift(...steps.slice(taken));
      }
    }
  }
}

/** How often a process looks whether it is late itself. */
const BEAT_MS = 20;
/** A timer may be late by so much without anybody's fault. */
const PUNCTUAL_MS = 5;
/** Nobody asks any more: so many beats later it ends, that an idle process sleeps. */
const BEATS_UNASKED_MAX = 50;

/** Counts how late its own timer is, while somebody asks now and then. */
export class OwnDelay {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  #delayMs = 0;
  #dueMs: number | undefined;
  #unasked = 0;

  constructor(clock: Pick<Clock, "monotonicMs" | "after">) {
    this.#clock = clock;
  }

  /** Milliseconds so far, what is late right now included: sockets may be read before timers. */
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

/** The machine's clock. It is bound, since `performance` is looked up anew each time that it is named (17 of 80 ns). */
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
 * Reads a duration as the configuration writes it: a whole number and a unit (`ms s m h d`).
 * @returns milliseconds, or undefined when the text is not a duration.
 */
export function parseDurationMs(text: string): number | undefined {
  const match = /^(0|[1-9][0-9]{0,8})(ms|s|m|h|d)$/.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * (UNIT_MS[match[2] as string] as number);
}

const DAY_MS = 86_400_000;
/** The day that was asked for last: most requests are of today. */
let lastDay = { number: Number.NaN, text: "" };

/** The UTC day of an instant, `YYYY-MM-DD`; per-day sums are filed under it. */
export function utcDay(epochMs: number): string {
  const number = Math.floor(epochMs / DAY_MS);
  if (number !== lastDay.number) lastDay = { number, text: new Date(epochMs).toISOString().slice(0, 10) };
  return lastDay.text;
}
