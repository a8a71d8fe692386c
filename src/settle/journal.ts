/**
 * The journal's interface: a charge exists from the moment `final` resolves. `journal/open.ts` opens the one that keeps
 * its records on disk; both stores have the same one.
 */
import type { SettleAsk } from "../store/settlement.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";

/** What is known of a request when it goes upstream. */
interface OpenRecord {
  /** The settlement that voids its hold: what becomes of it when the process dies before anything was produced. */
  readonly voided: SettleAsk;
  readonly hold: NanoUsd;
}

/** An administrative write that the store has acknowledged; enough to do it again should the store forget it. */
export interface AdminRecord {
  readonly kind:
    | "account_create"
    | "account_plan"
    | "account_limits"
    | "account_notify"
    | "account_change"
    | "account_rename"
    | "credit"
    | "key_create"
    | "key_change"
    | "key_rotate"
    | "key_revoke"
    | "grant"
    | "code"
    | "sign_in_drop";
  /** What makes a second time harmless: payment id, key id and revision, entitlement id. */
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** How a charge ended: taken by the store, or kept as a dead letter. */
export type AckOutcome = "settled" | "dead";

export interface JournalHealth {
  /** False: new requests are refused with `journal_full`. */
  readonly usable: boolean;
  /** Why not, in words for readiness and log. */
  readonly reason: string | undefined;
  /** Segments that exist, as a share of `bytesMax`. */
  readonly fillRatio: number;
  /** Charges without an ACK, and the age of the oldest, milliseconds. Running requests are none yet. */
  readonly unsettled: number;
  readonly oldestUnsettledMs: number;
}

/** The journal can take no record now; what it holds already is safe. */
export class JournalBrokenError extends Error {
  override readonly name = "JournalBrokenError";
}

export interface Journal {
  /** A request is about to go upstream. */
  open(record: OpenRecord): void;
  /** What a running stream has produced so far; an orphan is charged from its last checkpoint. */
  checkpoint(soFar: SettleAsk): void;
  /**
   * The charge. Resolves when it is durable; nothing terminal goes to the client before.
   * Rejects with JournalBrokenError when it cannot be made so: then it is the store that must have it first.
   * @param orphan the charge of a request whose process died: made from its last checkpoint, perhaps for the second time.
   */
  final(charge: SettleAsk, orphan?: boolean): Promise<void>;
  /** The store has the charge, or a dead letter has. */
  ack(requestId: RequestId, outcome: AckOutcome): void;
  /** An administrative write that the store acknowledged. Resolves when it is durable; rejects as `final` does. */
  adminWrite(record: AdminRecord): Promise<void>;
  health(): JournalHealth;
  /** Syncs what was written and gives the folder back. Safe to call twice. */
  close(): Promise<void>;
}

/* How often a running stream is noted: at its first byte, then every second or 512 tokens. */

const EVERY_MS = 1_000;
/** 512 tokens at 4 bytes each. */
const EVERY_BYTES = 2_048;

/** One per stream. */
export class CheckpointPace {
  #atMs: number | undefined;
  #bytes = 0;

  /**
   * Whether a checkpoint is due; says so once.
   * @param producedBytes what the stream has produced so far.
   */
  isDue(nowMs: number, producedBytes: number): boolean {
    const due =
      this.#atMs === undefined || nowMs - this.#atMs >= EVERY_MS || producedBytes - this.#bytes >= EVERY_BYTES;
    if (!due) return false;
    this.#atMs = nowMs;
    this.#bytes = producedBytes;
    return true;
  }
}
