/**
 * The journal's interface: a charge exists from the moment `final` resolves. `journal/open.ts` opens the
 * implementation, which keeps its records on disk. It is the same for both kinds of store.
 */
import type { SettleAsk } from "../store/settlement.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";

/** What is known of a request when it goes upstream. */
interface OpenRecord {
  /** The settlement that voids its hold; used if the process dies before anything was produced. */
  readonly voided: SettleAsk;
  readonly hold: NanoUsd;
}

/**
 * An administrative write that the store has acknowledged, with all that is needed to replay it if the store loses it.
 */
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
  /** Makes a replay harmless: payment id, key id and revision, entitlement id. */
  readonly id: string;
  readonly payload: Readonly<Record<string, unknown>>;
}

/** How a charge ended: in the store, or as a dead letter. */
export type AckOutcome = "settled" | "dead";

export interface JournalHealth {
  /** False: new requests are refused with `journal_full`. */
  readonly usable: boolean;
  /** Why not, as text for readiness and log. */
  readonly reason: string | undefined;
  /** Size of all segments as a share of `bytesMax`. */
  readonly fillRatio: number;
  /** Charges without an ACK, and the age of the oldest in milliseconds. Running requests do not count. */
  readonly unsettled: number;
  readonly oldestUnsettledMs: number;
}

/** The journal cannot take a record now; the records that it already has are safe. */
export class JournalBrokenError extends Error {
  override readonly name = "JournalBrokenError";
}

export interface Journal {
  /** Records that a request is about to go upstream. */
  open(record: OpenRecord): void;
  /** Records what a running stream has produced so far. An orphan is charged from its last checkpoint. */
  checkpoint(soFar: SettleAsk): void;
  /**
   * Records the charge. Resolves when it is durable; the client does not get the end of its answer before that.
   * Rejects with JournalBrokenError if the charge cannot be made durable: then the store must have been asked first.
   * @param orphan the request's process died: the charge is made from its last checkpoint, perhaps for the second time.
   */
  final(charge: SettleAsk, orphan?: boolean): Promise<void>;
  /** Records that the charge is in the store, or is a dead letter. */
  ack(requestId: RequestId, outcome: AckOutcome): void;
  /** Records an administrative write that the store acknowledged. Resolves when it is durable; rejects like `final`. */
  adminWrite(record: AdminRecord): Promise<void>;
  health(): JournalHealth;
  /** Syncs what was written and releases the folder. Safe to call twice. */
  close(): Promise<void>;
}

/* When a running stream is checkpointed: at its first byte, then every second or every 512 tokens. */

const EVERY_MS = 1_000;
/** 512 tokens at 4 bytes each. */
const EVERY_BYTES = 2_048;

/** Decides when a stream's next checkpoint is due; one per stream. */
export class CheckpointPace {
  #atMs: number | undefined;
  #bytes = 0;

  /**
   * Whether a checkpoint is due; true only once for each.
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
