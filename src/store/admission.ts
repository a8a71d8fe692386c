/**
 * What admission asks of a store and what the store answers. One script decides key, group, plan, funds, limits and
 * hold.
 */
import type { GroupKind } from "../values/catalog.ts";
import type { IdempotentRequest } from "../values/idempotency.ts";
import type { AccountTag, KeyHash } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";
import type { BudgetSpan } from "./limits/limits.ts";

/** Terms of one group that serves the model, for this request. The script picks the terms of the key's group. */
export interface GroupTerms {
  readonly group: string;
  readonly kind: GroupKind;
  /** Maximum cost of the request as asked, with the usual estimate of its input. */
  readonly holdFull: NanoUsd;
  /** The same for the smallest useful form of the request; at most holdFull. */
  readonly holdMin: NanoUsd;
  /**
   * The same two amounts without estimates, at least as large. Used for an account whose charges repeatedly exceeded
   * its holds and its funds or budgets.
   */
  readonly worstCase?: { readonly holdFull: NanoUsd; readonly holdMin: NanoUsd } | undefined;
  /** Requests per minute, or undefined for no such limit. */
  readonly requestsPerMinute: number | undefined;
  /** Tokens per minute, or undefined. */
  readonly tokensPerMinute: number | undefined;
  /** Requests in flight at most. */
  readonly concurrency: number;
  /** Whether the limits above count per key instead of per account. */
  readonly perKey: boolean;
  /** Of a time-card group: when no card pays, the balance does. */
  readonly fallback?: boolean | undefined;
}

export interface AdmitAsk {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  readonly keyHash: KeyHash;
  /** The model's name in the catalog, for keys that may use some models only. */
  readonly model: string;
  /** The client's address as bits (`address-bits.ts`), for keys with a list of allowed addresses; empty: unknown. */
  readonly address: string;
  /** Plans that list the model. */
  readonly plans: readonly string[];
  /** Every group that serves the model. */
  readonly groups: readonly GroupTerms[];
  /** Input tokens taken from the token bucket now. Settlement corrects the figure. */
  readonly inputTokens: number;
  /** Lifetime of the hold, counted from now on the store's clock. */
  readonly holdTtlMs: number;
  /** True when an earlier try of this request was already counted in the request bucket (ARCHITECTURE.md promise 5). */
  readonly again: boolean;
  /**
   * True when the id was made for this ask and was never used in another ask or settlement. A store in this process,
   * which no ask reaches late, then skips the look-up of an earlier answer.
   */
  readonly fresh?: boolean;
  /**
   * The idempotency key that the request takes while its hold lives. The request is refused when another one has the
   * key.
   */
  readonly idempotency?: IdempotentRequest | undefined;
}

/** State of one bucket after the decision, for the rate-limit headers. */
export interface BucketState {
  /** The per-minute limit. */
  readonly limit: number;
  /** Whole units left now; never negative. */
  readonly remaining: number;
  /** Milliseconds until the bucket is full again. */
  readonly resetMs: number;
}

export interface LimitStates {
  readonly requests: BucketState | undefined;
  readonly tokens: BucketState | undefined;
}

export interface Admitted {
  readonly outcome: "admitted";
  readonly accountId: string;
  readonly keyId: string;
  readonly group: string;
  /** The amount held, between holdMin and holdFull of the group; 0 on an entitlement without quota. */
  readonly hold: NanoUsd;
  /** True when the account gets worst-case holds; `hold` then comes from the group's `worstCase`. */
  readonly worstCase?: true;
  /**
   * What the payer had free besides the hold. Undefined when nothing is held, or when an earlier version admitted the
   * request.
   */
  readonly free?: NanoUsd | undefined;
  /** The entitlement that pays, or undefined when the balance does. */
  readonly entitlement: string | undefined;
  /** Whether the entitlement that pays has no quota: no hold, no clamp, a ledger line of 0. */
  readonly unmetered: boolean;
  /**
   * The store's clock at admission, milliseconds since the epoch. It sets the day of the charge and the time limit for
   * replays.
   */
  readonly storeTimeMs: number;
  readonly limits: LimitStates;
  /** What the request is counted in besides its group's limits (`readCounted` of budgets.ts); empty: nothing. */
  readonly counted: string;
}

/** Why a key is refused, whatever it asks for. */
export type KeyRefusalCause = "unknown_key" | "revoked_key" | "suspended" | "expired_key" | "address_not_allowed";

const KEY_REFUSALS: ReadonlySet<string> = new Set<KeyRefusalCause>([
  "unknown_key",
  "revoked_key",
  "suspended",
  "expired_key",
  "address_not_allowed",
]);

export function isKeyRefusal(cause: AdmitRefusalCause): cause is KeyRefusalCause {
  return KEY_REFUSALS.has(cause);
}

export type AdmitRefusalCause =
  | KeyRefusalCause
  | "not_in_plan"
  | "group_mismatch"
  /** The key may use only other models. */
  | "model_not_allowed"
  | "no_entitlement"
  | "quota_used"
  | "insufficient_balance"
  /** The rest of a budget, of the key or of the account, is below holdMin. */
  | "key_budget"
  | "account_budget"
  | "requests"
  | "tokens"
  | "concurrency"
  /** Another request has the idempotency key: it has another body, is under way, or was charged. */
  | "idempotency_key"
  | "idempotency_in_progress"
  | "idempotency_streamed"
  | "idempotency_finished";

export interface AdmitRefused {
  readonly outcome: "refused";
  readonly cause: AdmitRefusalCause;
  /** The key's group, if the key is known. */
  readonly group: string | undefined;
  /** For requests and tokens: milliseconds until the same ask would pass, exact. Otherwise undefined. */
  readonly retryAfterMs: number | undefined;
  readonly limits: LimitStates;
  /**
   * When the cause is a budget: its span, and the start of the next one in milliseconds since the epoch; undefined for
   * a budget without an end.
   */
  readonly span?: BudgetSpan | undefined;
  readonly resetsAtMs?: number | undefined;
  /** The size of the budget, and the id of the key that ran into it. */
  readonly budget?: NanoUsd | undefined;
  readonly keyId?: string | undefined;
  /** The key's own limit, when that limit, and not its group's, refuses requests, tokens or concurrency. */
  readonly limitOfKey?: number | undefined;
  /** The account's concurrency limit over all its groups and keys, when that limit refuses. */
  readonly limitOfAccount?: number | undefined;
  /** The request that has the idempotency key, when that is the cause. */
  readonly first?: RequestId | undefined;
}
