/**
 * What the log says of a store that is away: one line when it goes, a rare reminder, one line when it is back. The reason
 * that its connections give is part of that line and no line of its own, since they try again several times a second.
 */

import type { Log } from "../../telemetry/log.ts";
import { errorText } from "../../values/program/error-text.ts";
import type { Clock } from "../../values/time.ts";

const REMIND_MS = 600_000;
/** Reasons that are remembered, so that each is told once in a while; beyond it the oldest is forgotten. */
const REASONS_MAX = 32;
const MS_PER_S = 1_000;

export class AwayLog {
  readonly #clock: Clock;
  readonly #log: Log;
  /** Why a connection failed last; undefined when that was told, or none has failed since the store was looked at. */
  #failure: string | undefined;
  /** Undefined while the store answers. */
  #awaySinceMs: number | undefined;
  #remindedMs = 0;
  readonly #toldMs = new Map<string, number>();

  constructor(clock: Clock, log: Log) {
    this.#clock = clock;
    this.#log = log;
  }

  /** A connection was lost or could not be made. What that means is known when the store is looked at the next time. */
  failed(reason: string): void {
    this.#failure = reason;
  }

  /** The store was looked at, and does not answer. */
  away(error: unknown): void {
    const nowMs = this.#clock.monotonicMs();
    const reason = this.#failure ?? errorText(error);
    if (this.#awaySinceMs === undefined) {
      this.#awaySinceMs = nowMs;
      this.#remindedMs = nowMs;
      const until = "it is asked every second, and new requests get 503 until it does";
      this.#log.warn({ event: "store_away", reason, away_s: 0 }, `the store does not answer; ${until}`);
    } else if (nowMs - this.#remindedMs >= REMIND_MS) {
      this.#remindedMs = nowMs;
      this.#log.warn({ event: "store_away", reason, away_s: this.#awayS(nowMs) }, "the store still does not answer");
    }
  }

  /** The store was looked at, and answers. */
  answers(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#awaySinceMs !== undefined) {
      this.#log.info({ event: "store_back", away_s: this.#awayS(nowMs) }, "the store answers again");
      this.#awaySinceMs = undefined;
    } else if (this.#failure !== undefined) this.#tellOfFailure(this.#failure, nowMs);
    this.#failure = undefined;
  }

  /** One server of several, or a connection that was lost and is there again. */
  #tellOfFailure(reason: string, nowMs: number): void {
    const toldMs = this.#toldMs.get(reason);
    if (toldMs !== undefined && nowMs - toldMs < REMIND_MS) return;
    this.#toldMs.delete(reason);
    this.#toldMs.set(reason, nowMs);
    const [oldest] = this.#toldMs.keys();
    if (this.#toldMs.size > REASONS_MAX && oldest !== undefined) this.#toldMs.delete(oldest);
    this.#log.warn({ reason }, "a connection to the store failed; the store answers");
  }

  #awayS(nowMs: number): number {
    return Math.round((nowMs - (this.#awaySinceMs ?? nowMs)) / MS_PER_S);
  }
}
