/**
 * A circuit breaker for one server of the store. Closed: calls go through and their outcomes are counted. Open, after too
 * many failures or slow answers: calls are refused at once, and a probe of our own is sent after a pause that grows with
 * jitter. The probe's answer closes it; requests never have to try whether the store is back (docs/failure-model.md
 * invariant 28, rows B3 and B4).
 */
import type { Clock } from "../../values/time.ts";

/** This many failures in a row open it; each took up to half a second, so more requests than these are waiting by then. */
const FAILURES_IN_A_ROW = 5;
/** An answer that took so long came at the second try: Redis is given 400 ms for the first. */
const SLOW_MS = 400;
/** Of the last WINDOW calls, this share failed or slow opens it, for a store that answers every other time. */
const BAD_SHARE = 0.5;
const WINDOW = 20;
/** Calls further apart than this say nothing about one another. */
const QUIET_MS = 10_000;
const PAUSE_FIRST_MS = 250;
const PAUSE_MAX_MS = 2_000;

interface BreakerParts {
  readonly clock: Clock;
  /** Between 0 and 1, so that replicas do not come back in step. */
  readonly random: () => number;
  /** Asks the store something that it can only answer when it works. */
  readonly probe: () => Promise<unknown>;
  /** Called when it opens and when it closes. */
  readonly onChange: (open: boolean) => void;
}

export class Breaker {
  readonly #parts: BreakerParts;
  /** Outcomes of the last calls, oldest overwritten first; true is bad. */
  readonly #window: boolean[] = [];
  #next = 0;
  #failures = 0;
  #lastMs = 0;
  #openSinceMs: number | undefined;
  #pauseMs = PAUSE_FIRST_MS;
  #cancel = () => {};

  constructor(parts: BreakerParts) {
    this.#parts = parts;
  }

  get isOpen(): boolean {
    return this.#openSinceMs !== undefined;
  }

  /** How long it has been open, milliseconds; 0 while it is closed. */
  get openMs(): number {
    return this.#openSinceMs === undefined ? 0 : this.#parts.clock.monotonicMs() - this.#openSinceMs;
  }

  /** Counts a call that has ended. Calls that were sent before it opened count for nothing afterwards. */
  count(failed: boolean, tookMs: number): void {
    if (this.isOpen) return;
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs - this.#lastMs > QUIET_MS) this.#forget();
    this.#lastMs = nowMs;
    this.#failures = failed ? this.#failures + 1 : 0;
    this.#window[this.#next] = failed || tookMs >= SLOW_MS;
    this.#next = (this.#next + 1) % WINDOW;
    const bad = this.#window.filter(Boolean).length;
    const mostlyBad = this.#window.length === WINDOW && bad >= WINDOW * BAD_SHARE;
    if (this.#failures >= FAILURES_IN_A_ROW || mostlyBad) this.#open(nowMs);
  }

  /** Ends the probing; safe to call twice. */
  stop(): void {
    this.#cancel();
    this.#cancel = () => {};
  }

  #open(nowMs: number): void {
    this.#openSinceMs = nowMs;
    this.#pauseMs = PAUSE_FIRST_MS;
    this.#parts.onChange(true);
    this.#probeLater();
  }

  #probeLater(): void {
    const pauseMs = this.#pauseMs * (0.5 + this.#parts.random() / 2);
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
    this.#cancel = this.#parts.clock.after(pauseMs, () => void this.#halfOpen());
  }

  /** One call at a time tests whether the store is back; a slow answer does not count. */
  async #halfOpen(): Promise<void> {
    const { clock, probe, onChange } = this.#parts;
    const startedMs = clock.monotonicMs();
    const answered = await probe().then(
      () => true,
      () => false,
    );
    if (!answered || clock.monotonicMs() - startedMs >= SLOW_MS) return this.#probeLater();
    this.#openSinceMs = undefined;
    this.#forget();
    onChange(false);
  }

  #forget(): void {
    this.#window.length = 0;
    this.#next = 0;
    this.#failures = 0;
  }
}
