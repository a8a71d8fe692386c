/**
 * Unfinished audits, kept for the next answer to continue them. If one is lost, it starts again; nothing else changes.
 */
import type { AuditProgress, AuditSteps } from "../../../store/ledger/audit.ts";
import type { AccountName } from "../../../store/records.ts";
import type { Clock } from "../../../values/time.ts";

/** Maximum number of audits; the one that was used least recently is dropped first. */
const KEPT_MAX = 8;
/** An audit is dropped when it was not used for this long. */
const KEPT_MS = 120_000;

/** An audit of one account. */
export interface KeptAudit {
  readonly id: string;
  readonly account: AccountName;
  readonly steps: AuditSteps;
  progress: AuditProgress;
}

export class KeptAudits<T extends { readonly id: string }> {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #kept = new Map<string, { readonly audit: T; readonly untilMs: number }>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  /** Takes an audit out for one answer; a concurrent request for it finds none. */
  take(id: string): T | undefined {
    this.#forget();
    const kept = this.#kept.get(id);
    this.#kept.delete(id);
    return kept?.audit;
  }

  keep(audit: T): void {
    this.#forget();
    this.#kept.set(audit.id, { audit, untilMs: this.#clock.monotonicMs() + KEPT_MS });
    for (const id of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_MAX) return;
      this.#kept.delete(id);
    }
  }

  #forget(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, { untilMs }] of this.#kept) if (untilMs <= nowMs) this.#kept.delete(id);
  }
}
