/**
 * Logs the outages of a store: one line when it stops answering, a rare reminder, and one line when it is back. The
 * reason from its connections is part of that line and not a line of its own, because they retry several times a
 * second.
 */

import type { Log } from "../../telemetry/log.ts";
import { errorText } from "../../values/program/error-text.ts";
import type { Clock } from "../../values/time.ts";

const REMIND_MS = 600_000;
/** Reasons that are remembered, so that each is logged only once in a while. Beyond it the oldest is forgotten. */
const REASONS_MAX = 32;
const MS_PER_S = 1_000;

export class OutageLog {
  readonly #clock: Clock;
  readonly #log: Log;
  /**
   * The last reason why a connection failed; undefined when it was logged, or when none has failed since the last
   * check.
   */
  #failure: string | undefined;
  #problem: string | undefined;
  /** Undefined while the store answers. */
  #unreachableSinceMs: number | undefined;
  #remindedMs = 0;
  readonly #loggedMs = new Map<string, number>();

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /**
   * A connection was lost or could not be made. The next check of the store shows what that means.
   * @param problem what readiness may say of it, without addresses and names; undefined: only that there is no answer.
   */
  connectionFailed(reason: string, problem?: string): void {
    this.#failure = reason;
    this.#problem = problem;
  }

  /** What is wrong with a store that is away, in the words of readiness: without addresses and names. */
  get problem(): string {
    return this.#problem ?? "the store does not answer";
  }

  /** The store was checked and does not answer, or does not let this gateway in. */
  unreachable(error: unknown): void {
    const nowMs = this.#clock.monotonicMs();
    const reason = this.#failure ?? errorText(error);
    if (this.#unreachableSinceMs === undefined) {
      this.#unreachableSinceMs = nowMs;
      this.#remindedMs = nowMs;
      const until = "it is checked every second, and new requests get 503 until it can be used";
      this.#log.warn({ event: "store_away", reason, away_s: 0 }, `${this.problem}; ${until}`);
    } else if (nowMs - this.#remindedMs >= REMIND_MS) {
      this.#remindedMs = nowMs;
      this.#log.warn({ event: "store_away", reason, away_s: this.#unreachableS(nowMs) }, `still: ${this.problem}`);
    }
  }

  /** The store was checked and answers. */
  answers(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#unreachableSinceMs !== undefined) {
      this.#log.info({ event: "store_back", away_s: this.#unreachableS(nowMs) }, "the store answers again");
      this.#unreachableSinceMs = undefined;
    } else if (this.#failure !== undefined) this.#logFailure(this.#failure, nowMs);
    this.#failure = undefined;
    this.#problem = undefined;
  }

  /** Logs the failure of one server of several, or of a connection that has been restored. */
  #logFailure(reason: string, nowMs: number): void {
    const loggedMs = this.#loggedMs.get(reason);
    if (loggedMs !== undefined && nowMs - loggedMs < REMIND_MS) return;
    this.#loggedMs.delete(reason);
    this.#loggedMs.set(reason, nowMs);
    const [oldest] = this.#loggedMs.keys();
    if (this.#loggedMs.size > REASONS_MAX && oldest !== undefined) this.#loggedMs.delete(oldest);
    this.#log.warn({ reason }, "a connection to the store failed; the store answers");
  }

  #unreachableS(nowMs: number): number {
    return Math.round((nowMs - (this.#unreachableSinceMs ?? nowMs)) / MS_PER_S);
  }
}
