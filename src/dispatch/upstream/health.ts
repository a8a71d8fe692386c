/**
 * The health of one upstream, similar to Envoy's outlier detection. An upstream is ejected after consecutive failures
 * or too large a share of failures, for a time that doubles with each repetition. Then one real request is the probe,
 * and another one after each `cool_down` without an answer. Only an answer returns the upstream to service. Its own
 * `retry-after` is honored in the same way.
 *
 * Health is only a preference. If a model has no other upstream left, an ejected one is still used: `choose.ts`.
 */
import type { HealthSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import { type OutcomeCounts, type OutcomeKind, Outcomes } from "./outcomes.ts";

/** `probe`: one request may try it. */
type HealthStatus = "healthy" | "probe" | "ejected";

/**
 * `failures`: consecutive; `failure_rate`: too large a share; `forbidden`: our credential was refused, or it only
 * answered 403.
 */
type EjectionReason = "failures" | "failure_rate" | "forbidden";

export interface Ejection {
  readonly reason: EjectionReason;
  readonly restMs: number;
  /** Number of ejections in short succession, including this one. */
  readonly repeated: number;
}

/** The outcome of one attempt. */
export interface HealthVerdict {
  /**
   * `denied`: it refused with 403, because of our credential or of the contents of one request. `alive`: it answered
   * that the caller is at fault. `none`: no evidence about the upstream.
   */
  readonly kind: OutcomeKind | "denied" | "alive" | "none";
  /** The model's name at the upstream: rate limits are per model. */
  readonly model: string;
  readonly retryAfterS: number | undefined;
  readonly startedAtMs: number;
  /** Whether `begin` returned that this attempt is the probe. */
  readonly probe: boolean;
}

export interface HealthState {
  readonly health: HealthStatus;
  readonly reason: EjectionReason | "retry_after" | undefined;
  readonly restMs: number;
  /**
   * Whether a probe is overdue for longer than any ejection: there are no requests, and nothing is known to be wrong.
   */
  readonly isForgotten: boolean;
  /** Models for which the upstream has asked for a pause (429). */
  readonly limitedModels: ReadonlyMap<string, number>;
  readonly outcomes: OutcomeCounts;
}

interface HealthParts {
  readonly clock: Clock;
  /** A number in [0, 1). */
  readonly random: () => number;
  readonly onEjected: (ejection: Ejection) => void;
  readonly onReturned: () => void;
}

/** Cool-downs vary by up to this share in both directions, so that replicas do not return at the same time. */
const JITTER = 0.2;

/** More doublings would overflow before they reach any maximum. */
const DOUBLINGS_MAX = 20;

export class Health {
  readonly #settings: HealthSettings;
  readonly #parts: HealthParts;
  readonly #outcomes: Outcomes;
  /**
   * Consecutive failures by kind: a server that answers 500 is at least reachable. 403 answers are counted as well: a
   * single one may be caused by the contents of a request, and a client that can cause it must not be able to eject the
   * upstream for all.
   */
  readonly #inARow = { local: 0, remote: 0, denied: 0 };
  /** Ejected until `#restUntilMs`, and then until a probe has been answered. */
  #ejected: EjectionReason | undefined = undefined;
  #ejectedAtMs = 0;
  #returnedAtMs = Number.NEGATIVE_INFINITY;
  #repeated = 0;
  #restUntilMs = Number.NEGATIVE_INFINITY;
  /**
   * Until when to wait for the probe. A slow probe, or one whose client reads slowly, does not block others longer than
   * this.
   */
  #probingUntilMs = Number.NEGATIVE_INFINITY;
  /** Until when the upstream has asked for a pause. */
  #askedUntilMs = Number.NEGATIVE_INFINITY;
  readonly #limitedUntilMs = new Map<string, number>();

  constructor(settings: HealthSettings, parts: HealthParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#outcomes = new Outcomes(settings.windowMs);
  }

  /** @param model the model's name at the upstream. */
  status(model: string): HealthStatus {
    if (this.#isUntroubled()) return "healthy";
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs < this.#restUntilMs || nowMs < (this.#limitedUntilMs.get(model) ?? nowMs)) return "ejected";
    if (this.#ejected === undefined) return "healthy";
    return nowMs < this.#probingUntilMs ? "ejected" : "probe";
  }

  /** Usually there is nothing against it, and no clock is needed to see that. */
  #isUntroubled(): boolean {
    return (
      this.#ejected === undefined && this.#limitedUntilMs.size === 0 && this.#restUntilMs === Number.NEGATIVE_INFINITY
    );
  }

  /**
   * Whether the upstream is ejected only by our own judgment. A pause that the upstream asked for is always respected.
   */
  isOnlyDoubted(model: string): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    return (
      this.#ejected !== undefined && nowMs >= this.#askedUntilMs && nowMs >= (this.#limitedUntilMs.get(model) ?? nowMs)
    );
  }

  /** Remaining pause in milliseconds; 0 if it only waits for a probe. */
  restMs(model: string): number {
    const untilMs = Math.max(this.#restUntilMs, this.#limitedUntilMs.get(model) ?? 0);
    return Math.max(0, untilMs - this.#parts.clock.monotonicMs());
  }

  /**
   * An attempt begins; `report` must follow once.
   * @returns whether it is the probe.
   */
  begin(model: string): boolean {
    if (this.status(model) !== "probe") return false;
    this.#probingUntilMs = this.#parts.clock.monotonicMs() + this.#settings.coolDownMs;
    return true;
  }

  /**
   * Reports the outcome of an attempt; or, without another `begin`, that a stream has broken off after its beginning.
   * @param nowMs by the clock's `monotonicMs`, if it has just been read.
   */
  report(verdict: HealthVerdict, nowMs = this.#parts.clock.monotonicMs()): void {
    const { kind, probe } = verdict;
    if (probe) this.#probingUntilMs = Number.NEGATIVE_INFINITY;
    if (kind === "none") return;
    if (kind !== "alive") this.#outcomes.add(kind === "denied" ? "forbidden" : kind, nowMs);
    if (kind === "not_found") return;
    if (kind === "ok" || kind === "alive") this.#answered(verdict, nowMs);
    else if (kind === "rate_limited") this.#limited(verdict, nowMs);
    else this.#failed(kind, verdict, nowMs);
  }

  state(): HealthState {
    const nowMs = this.#parts.clock.monotonicMs();
    const isPaused = nowMs < this.#restUntilMs;
    const health =
      isPaused || nowMs < this.#probingUntilMs ? "ejected" : this.#ejected === undefined ? "healthy" : "probe";
    return {
      health,
      reason: this.#ejected ?? (isPaused ? "retry_after" : undefined),
      restMs: Math.max(0, this.#restUntilMs - nowMs),
      isForgotten: health === "probe" && nowMs - this.#restUntilMs >= this.#settings.coolDownMaxMs,
      limitedModels: new Map(
        [...this.#limitedUntilMs]
          .map(([model, untilMs]) => [model, untilMs - nowMs] as const)
          .filter(([, ms]) => ms > 0),
      ),
      outcomes: this.#outcomes.counts(nowMs),
    };
  }

  /** Only an answer to an attempt that began after the ejection ends it: others were already running. */
  #answered({ startedAtMs, probe }: HealthVerdict, nowMs: number): void {
    this.#endRow();
    if (this.#ejected === undefined || !(probe || startedAtMs > this.#ejectedAtMs)) return;
    this.#ejected = undefined;
    this.#restUntilMs = Number.NEGATIVE_INFINITY;
    this.#returnedAtMs = nowMs;
    this.#outcomes.clear();
    this.#parts.onReturned();
  }

  /** 429 is not a failure, and limits are per model: only this model is paused, for as long as the upstream asks. */
  #limited({ model, retryAfterS, probe }: HealthVerdict, nowMs: number): void {
    const restMs = this.#bounded(retryAfterS) ?? this.#settings.coolDownMs;
    this.#limitedUntilMs.set(model, Math.max(this.#limitedUntilMs.get(model) ?? 0, nowMs + restMs));
    this.#inARow.local = 0;
    // A server that counts our requests is up again.
    if (probe) this.#answered({ kind: "alive", model, retryAfterS, startedAtMs: nowMs, probe }, nowMs);
  }

  #failed(kind: "local" | "remote" | "denied" | "forbidden", verdict: HealthVerdict, nowMs: number): void {
    const askedMs = this.#bounded(verdict.retryAfterS);
    if (askedMs !== undefined) this.#askedUntilMs = Math.max(this.#askedUntilMs, nowMs + askedMs);
    if (this.#ejected !== undefined) {
      // Attempts that were running at the ejection, or had no other upstream, do not prolong it; the probe does.
      if (verdict.probe) this.#eject(this.#ejected, nowMs, askedMs);
      return;
    }
    if (kind !== "local") this.#inARow.local = 0;
    if (kind === "forbidden") {
      this.#eject("forbidden", nowMs, askedMs);
      return;
    }
    this.#inARow[kind] += 1;
    if (this.#inARow[kind] >= this.#settings.failures)
      this.#eject(kind === "denied" ? "forbidden" : "failures", nowMs, askedMs);
    else if (this.#failsTooOften(nowMs)) this.#eject("failure_rate", nowMs, askedMs);
    else if (askedMs !== undefined) this.#restUntilMs = Math.max(this.#restUntilMs, nowMs + askedMs);
  }

  #endRow(): void {
    this.#inARow.local = 0;
    this.#inARow.remote = 0;
    this.#inARow.denied = 0;
  }

  #failsTooOften(nowMs: number): boolean {
    const { ok, local, remote } = this.#outcomes.counts(nowMs);
    const all = ok + local + remote;
    const { outcomesMin, failurePercent } = this.#settings;
    return all >= outcomesMin && (local + remote) * 100 >= failurePercent * all;
  }

  #eject(reason: EjectionReason, nowMs: number, askedMs: number | undefined): void {
    const { coolDownMs, coolDownMaxMs } = this.#settings;
    // After being healthy for longer than the longest cool-down, an upstream starts at the shortest one again.
    if (this.#ejected === undefined && nowMs - this.#returnedAtMs > coolDownMaxMs) this.#repeated = 0;
    const doubled = Math.min(coolDownMaxMs, coolDownMs * 2 ** Math.min(this.#repeated, DOUBLINGS_MAX));
    const jittered = doubled * (1 + JITTER * (2 * this.#parts.random() - 1));
    const restMs = Math.min(coolDownMaxMs, Math.max(jittered, askedMs ?? 0));
    this.#repeated += 1;
    this.#ejected = reason;
    this.#ejectedAtMs = nowMs;
    this.#restUntilMs = nowMs + restMs;
    this.#endRow();
    this.#parts.onEjected({ reason, restMs, repeated: this.#repeated });
  }

  /** The upstream's requested pause in milliseconds, capped at the operator's limit. */
  #bounded(retryAfterS: number | undefined): number | undefined {
    return retryAfterS === undefined
      ? undefined
      : Math.min(this.#settings.coolDownMaxMs, Math.round(retryAfterS * 1_000));
  }
}
