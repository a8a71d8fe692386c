/** What admission asks of a store and what it answers: one script decides key, group, plan, funds, limits and hold. */
import type { GroupKind } from "../values/catalog.ts";
import type { IdempotentRequest } from "../values/idempotency.ts";
import type { AccountTag, KeyHash } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";
import type { BudgetSpan } from "./limits/limits.ts";

/** What one group that serves the model would ask of this request; the script picks the key's group's. */
export interface GroupTerms {
  readonly group: string;
  readonly kind: GroupKind;
  /** The worst cost of the request as asked. */
  readonly holdFull: NanoUsd;
  /** The worst cost of the least useful form of the request; at most holdFull. */
  readonly holdMin: NanoUsd;
  /** In their place for an account whose charges went beyond its holds and funds again and again; at least as much. */
  readonly dear?: { readonly holdFull: NanoUsd; readonly holdMin: NanoUsd } | undefined;
  /** Requests per minute, or undefined for no such limit. */
  readonly requestsPerMinute: number | undefined;
  /** Tokens per minute, or undefined. */
  readonly tokensPerMinute: number | undefined;
  /** Requests in flight. */
  readonly concurrency: number;
  /** Whether the limits above count per key instead of per account. */
  readonly perKey: boolean;
  /** Of a time-card group: where no card pays, the balance does. */
  readonly fallback?: boolean | undefined;
}

export interface AdmitAsk {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  readonly keyHash: KeyHash;
  /** The model's name in the catalog, for keys that may use some models only. */
  readonly model: string;
  /** The client's address as bits (`address-bits.ts`), for keys that have a list of them; empty: it is not known. */
  readonly address: string;
  /** Plans that list the model. */
  readonly plans: readonly string[];
  /** Every group that serves the model. */
  readonly groups: readonly GroupTerms[];
  /** Input tokens taken from the token bucket now; corrected at settlement. */
  readonly inputTokens: number;
  /** How long the hold lives from now on the store's clock. */
  readonly holdTtlMs: number;
  /**
   * True when an earlier try of this request already took its place in the request bucket (ARCHITECTURE.md promise 5).
   */
  readonly again: boolean;
  /**
   * True where the id was made for this ask and nobody has asked or settled with it before. A store in this process, which no
   * ask reaches late, then does not look up whether it has answered it already.
   */
  readonly fresh?: boolean;
  /** The idempotency key that the request takes for as long as its hold lives; it is refused when another has it. */
  readonly idempotency?: IdempotentRequest | undefined;
}

/** State of one bucket after the decision, for the rate-limit headers. */
export interface BucketState {
  /** The per-minute figure. */
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
  /** The amount held: between holdMin and holdFull of the group; 0 on an entitlement without quota. */
  readonly hold: NanoUsd;
  /** True where the account is held at the dearest, and `hold` is of the group's `dear`. */
  readonly dear?: true;
  /** What the payer had free beside the hold; undefined where nothing is held, or where an earlier version admitted. */
  readonly free?: NanoUsd | undefined;
  /** The entitlement that pays, or undefined when the balance does. */
  readonly entitlement: string | undefined;
  /** Whether the entitlement that pays has no quota (no hold, no clamp, a ledger line of 0). */
  readonly unmetered: boolean;
  /** The store's clock at admission, milliseconds since the epoch: the charge's day and the limit of its replay. */
  readonly storeTimeMs: number;
  readonly limits: LimitStates;
  /** What the request counts in beside its group's limits (`readCounted` of budgets.ts); empty: nothing. */
  readonly counted: string;
}

/** Why a key itself is refused, whatever it asks for. */
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
  /** The key may use other models only. */
  | "model_not_allowed"
  | "no_entitlement"
  | "quota_used"
  | "insufficient_balance"
  /** The rest of a budget of the key, or of the account, is below the least hold. */
  | "key_budget"
  | "account_budget"
  | "requests"
  | "tokens"
  | "concurrency"
  /** Another request has the idempotency key: with another body, under way, or charged. */
  | "idempotency_key"
  | "idempotency_in_progress"
  | "idempotency_streamed"
  | "idempotency_finished";

export interface AdmitRefused {
  readonly outcome: "refused";
  readonly cause: AdmitRefusalCause;
  /** The key's group, once the key is known. */
  readonly group: string | undefined;
  /** For requests and tokens: milliseconds until the same ask would pass, exact; else undefined. */
  readonly retryAfterMs: number | undefined;
  readonly limits: LimitStates;
  /** The budget, when the cause is one, and when it begins anew, milliseconds since the epoch: never, where it has no end. */
  readonly span?: BudgetSpan | undefined;
  readonly resetsAtMs?: number | undefined;
  /** What the budget is, and the key that has met it. */
  readonly budget?: NanoUsd | undefined;
  readonly keyId?: string | undefined;
  /** The figure of the key's own limit, when that is what refuses requests, tokens or concurrency, not its group's. */
  readonly limitOfKey?: number | undefined;
  /** What an account may have at once over all its groups and keys, when that is what refuses concurrency. */
  readonly limitOfAccount?: number | undefined;
  /** The request that has the idempotency key, when that is the cause. */
  readonly first?: RequestId | undefined;
}
