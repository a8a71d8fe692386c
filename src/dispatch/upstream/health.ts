/**
 * Whether one upstream is to be asked (after Envoy's outlier detection): it is passed over after
 * failures in a row or too large a share of them, for a time that doubles with each repetition; then one real request is
 * the probe, another after each `cool_down` in which none is answered, and only an answer brings the others back. An upstream's own
 * `retry-after` is obeyed likewise.
 *
 * Health only says what should be preferred. Where a model has nothing else left, it is asked all the same: `choose.ts`.
 */
import type { HealthSettings } from "../../values/settings.ts";
import type { Clock } from "../../values/time.ts";
import { type OutcomeCounts, type OutcomeKind, Outcomes } from "./outcomes.ts";

/** `probe`: it may be asked by one request, to see. */
type UpstreamStanding = "healthy" | "probe" | "ejected";

/** `failures`: in a row; `failure_rate`: too many of all; `forbidden`: our credential was refused, or 403 was all that it said. */
type EjectionReason = "failures" | "failure_rate" | "forbidden";

export interface Ejection {
  readonly reason: EjectionReason;
  readonly restMs: number;
  /** How many times in short succession, this one included. */
  readonly repeated: number;
}

/** The outcome of one attempt. */
export interface HealthVerdict {
  /**
   * `denied`: it refused with 403, be it our credential or what one request holds; `alive`: it answered, and found the caller at fault;
   * `none`: no evidence about the upstream.
   */
  readonly kind: OutcomeKind | "denied" | "alive" | "none";
  /** The model's name at the upstream: rate limits are per model. */
  readonly model: string;
  readonly retryAfterS: number | undefined;
  readonly startedAtMs: number;
  /** Whether `begin` said that this attempt is the probe. */
  readonly probe: boolean;
}

export interface HealthState {
  readonly standing: UpstreamStanding;
  readonly reason: EjectionReason | "retry_after" | undefined;
  readonly restMs: number;
  /** Whether a probe is awaited for longer than any rest: nobody asks, and nothing is known to be wrong. */
  readonly isForgotten: boolean;
  /** Models that the upstream has asked us to leave alone for a while (429). */
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

/** Cool-downs differ by up to this share either way, so that replicas do not come back in one step. */
const JITTER = 0.2;

/** Doubling more often than this would overflow before it meets any maximum. */
const DOUBLINGS_MAX = 20;

export class Health {
  readonly #settings: HealthSettings;
  readonly #parts: HealthParts;
  readonly #outcomes: Outcomes;
  /**
   * Failures in a row, of each side: a server that answers 500 can at least be reached. Those with 403 are counted, too: one alone may be
   * about what it was asked, and whoever knows how to bring it about would take the upstream from everybody.
   */
  readonly #inARow = { local: 0, remote: 0, denied: 0 };
  /** Passed over until `#restUntilMs`, and then until a probe has been answered. */
  #ejected: EjectionReason | undefined = undefined;
  #ejectedAtMs = 0;
  #returnedAtMs = Number.NEGATIVE_INFINITY;
  #repeated = 0;
  #restUntilMs = Number.NEGATIVE_INFINITY;
  /** Until when a probe is waited for: one that takes its time, or whose client reads slowly, keeps nobody else from asking. */
  #probingUntilMs = Number.NEGATIVE_INFINITY;
  /** Until when the upstream has asked to be left alone. */
  #askedUntilMs = Number.NEGATIVE_INFINITY;
  readonly #limitedUntilMs = new Map<string, number>();

  constructor(settings: HealthSettings, parts: HealthParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#outcomes = new Outcomes(settings.windowMs);
  }

  /** @param model the model's name at the upstream. */
  standing(model: string): UpstreamStanding {
    if (this.#isUntroubled()) return "healthy";
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs < this.#restUntilMs || nowMs < (this.#limitedUntilMs.get(model) ?? nowMs)) return "ejected";
    if (this.#ejected === undefined) return "healthy";
    return nowMs < this.#probingUntilMs ? "ejected" : "probe";
  }

  /** Mostly nothing is against it, and no clock is needed to see that. */
  #isUntroubled(): boolean {
    return (
      this.#ejected === undefined && this.#limitedUntilMs.size === 0 && this.#restUntilMs === Number.NEGATIVE_INFINITY
    );
  }

  /** Whether only our own judgement keeps requests away: what an upstream asked for itself is always kept. */
  isOnlyDoubted(model: string): boolean {
    const nowMs = this.#parts.clock.monotonicMs();
    return (
      this.#ejected !== undefined && nowMs >= this.#askedUntilMs && nowMs >= (this.#limitedUntilMs.get(model) ?? nowMs)
    );
  }

  /** How long it should still be left alone, in milliseconds; 0 while only a probe is awaited. */
  restMs(model: string): number {
    const untilMs = Math.max(this.#restUntilMs, this.#limitedUntilMs.get(model) ?? 0);
    return Math.max(0, untilMs - this.#parts.clock.monotonicMs());
  }

  /**
   * An attempt begins; `tell` must follow once.
   * @returns whether it is the probe.
   */
  begin(model: string): boolean {
    if (this.standing(model) !== "probe") return false;
    this.#probingUntilMs = this.#parts.clock.monotonicMs() + this.#settings.coolDownMs;
    return true;
  }

  /**
   * An attempt has been decided; or, without having been begun again, a stream has broken after its beginning.
   * @param nowMs by the clock's `monotonicMs`, where it has just been read.
   */
  tell(verdict: HealthVerdict, nowMs = this.#parts.clock.monotonicMs()): void {
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
    const standing =
      isPaused || nowMs < this.#probingUntilMs ? "ejected" : this.#ejected === undefined ? "healthy" : "probe";
    return {
      standing,
      reason: this.#ejected ?? (isPaused ? "retry_after" : undefined),
      restMs: Math.max(0, this.#restUntilMs - nowMs),
      isForgotten: standing === "probe" && nowMs - this.#restUntilMs >= this.#settings.coolDownMaxMs,
      limitedModels: new Map(
        [...this.#limitedUntilMs]
          .map(([model, untilMs]) => [model, untilMs - nowMs] as const)
          .filter(([, ms]) => ms > 0),
      ),
      outcomes: this.#outcomes.counts(nowMs),
    };
  }

  /** Only an answer to what was asked after the ejection speaks for it: others were under way before. */
  #answered({ startedAtMs, probe }: HealthVerdict, nowMs: number): void {
    this.#endRow();
    if (this.#ejected === undefined || !(probe || startedAtMs > this.#ejectedAtMs)) return;
    this.#ejected = undefined;
    this.#restUntilMs = Number.NEGATIVE_INFINITY;
    this.#returnedAtMs = nowMs;
    this.#outcomes.clear();
    this.#parts.onReturned();
  }

  /** 429 is not an illness, and limits are per model: only this model is left alone, for as long as it was asked. */
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
      // Those that were under way when it was ejected, or had nowhere else to go, do not make it worse; the probe does.
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
    // An upstream that has been well for longer than the longest cool-down begins anew.
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

  /** An upstream's wish in milliseconds, within what the operator lets it have. */
  #bounded(retryAfterS: number | undefined): number | undefined {
    return retryAfterS === undefined
      ? undefined
      : Math.min(this.#settings.coolDownMaxMs, Math.round(retryAfterS * 1_000));
  }
}
