/** What settlement asks of a store and what it answers: a hold is posted or voided exactly once. */
import type { GroupKind } from "../values/catalog.ts";
import type { KeptRequest } from "../values/idempotency.ts";
import type { AccountTag } from "../values/key.ts";
import { type NanoUsd, ZERO } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";
import type { TokenSums } from "./sums/token-sums.ts";

/**
 * The cause of an `absorbed` line for the part of an upstream's count that exceeds the hold of an answer that broke
 * off. It is at the client's prices, and the client is never charged for it.
 */
export const CUT_OVER_HOLD = "cut_over_hold";

/**
 * A failed attempt at an upstream that may be on its bill and that no client pays for, or an entry for CUT_OVER_HOLD.
 */
export interface AbsorbedAttempt {
  readonly upstream: string;
  readonly cause: string;
  /** Above 0. */
  readonly amount: NanoUsd;
  /** As SettleAsk.memo, for this attempt. */
  readonly memo: string;
}

/**
 * The charge for a client that disconnected before it was given anything; due once its account's allowance for that is
 * used up.
 */
export interface LeftUnpaid {
  /** What an account may cost the operator in this way; restored evenly over a day. 0: everything is charged. */
  readonly allowance: NanoUsd;
  /** Above 0. */
  readonly amount: NanoUsd;
  /** As SettleAsk.memo, for the charge. */
  readonly memo: string;
  /** As SettleAsk.costs, for the charge: one of them is what the client pays for, and is not absorbed. */
  readonly costs: readonly UpstreamCost[];
}

/** The most attempts of one request that may have lines of their own. */
export const ABSORBED_ATTEMPTS_MAX = 8;

/** What a model of an upstream is expected to bill for a request, at the cost prices of its route. */
export interface UpstreamCost {
  readonly upstream: string;
  /** The model's name at the upstream. */
  readonly model: string;
  /**
   * Attempts on the bill, and their tokens. For a failed attempt: the tokens that its upstream counted, or else an
   * estimate.
   */
  readonly requests: number;
  readonly tokens: TokenSums;
  readonly cost: NanoUsd;
  /** The part of the cost that has `absorbed` lines, because no client pays for it. */
  readonly absorbed: NanoUsd;
  /**
   * Whether the request's charge, including the part that the payer's funds did not cover, is for this model. At most
   * one has it.
   */
  readonly charged: boolean;
}
/** One for each failed attempt, and one for the attempt that was answered. */
export const UPSTREAM_COSTS_MAX = ABSORBED_ATTEMPTS_MAX + 1;

/** How the request ended, in terms of money. */
export interface SettleAsk {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  /** Admitted.storeTimeMs of this request. If it is older than 48 h, the settlement is refused as stale. */
  readonly admittedAtMs: number;
  /** Who pays: the group of the key at admission, and the entitlement chosen then. */
  readonly group: string;
  readonly kind: GroupKind;
  readonly entitlement: string | undefined;
  readonly keyId: string;
  readonly perKey: boolean;
  readonly model: string;
  /** What the client owes; 0 voids the hold. */
  readonly amount: NanoUsd;
  /** What an attempt cost the operator without a payer; written as its own line when above 0. */
  readonly absorbed: NanoUsd;
  readonly absorbedCause: string | undefined;
  readonly upstream: string | undefined;
  /**
   * Input tokens that admission took from the bucket, and the tokens that were really used (input and output). If there
   * is no payer and the client did not cause it, none count as used and the bucket gets all tokens back. If the client
   * caused it, the bucket keeps at most as many as were taken.
   */
  readonly tokensTaken: number;
  readonly tokensUsed: number;
  readonly tokensPerMinute: number | undefined;
  /** Admitted.counted; asks of earlier versions have none. */
  readonly counted?: string | undefined;
  /** What a charged request read and wrote, for the sums per day; asks of earlier versions have none. */
  readonly tokens?: TokenSums | undefined;
  /** True when the request was refused or failed before anything was delivered. */
  readonly voided: boolean;
  /** Failed attempts, each an `absorbed` line after the others; asks of earlier versions have none. */
  readonly attempts?: readonly AbsorbedAttempt[] | undefined;
  /** What the request costs, each upstream and model once; asks of earlier versions have none. */
  readonly costs?: readonly UpstreamCost[] | undefined;
  /** Facts for the ledger line: usage, unit prices, multiplier, catalog version, who counted. A flat JSON object. */
  readonly memo: string;
  /**
   * Only for a voided request whose client has disconnected. If `absorbed` fits into what is left of the account's
   * allowance, it is taken from that and absorbed. Otherwise this is charged instead, with `tokensUsed` and `tokens`,
   * and nothing is voided (chargedInstead).
   */
  readonly leftUnpaid?: LeftUnpaid | undefined;
  /**
   * The request's idempotency key. A charge is remembered under it until the key ends; a voided request leaves the key
   * free.
   */
  readonly idempotency?: KeptRequest | undefined;
}

/** What is settled instead of an absorption: the charge for a client that disconnected before it was given anything. */
export function chargedInstead(ask: SettleAsk, { amount, memo, costs }: LeftUnpaid): SettleAsk {
  return { ...ask, voided: false, amount, absorbed: ZERO, memo, costs };
}

export type SettleAnswer =
  /**
   * Posted or voided now. `charged` is what the client paid; `absorbed` is what neither hold nor free funds covered.
   */
  | { readonly outcome: "settled"; readonly charged: NanoUsd; readonly absorbed: NanoUsd; readonly balance: NanoUsd }
  /** This request was settled before with the same amount. */
  | { readonly outcome: "duplicate" }
  /** This request was settled before with another amount; nothing was changed. */
  | { readonly outcome: "mismatch"; readonly recorded: NanoUsd }
  /**
   * The store has this request as settled, with this amount, but a part of the settlement is missing: its hold still
   * exists, or its lines do not. No script of this version leaves that state. Nothing was changed.
   */
  | { readonly outcome: "half_written"; readonly recorded: NanoUsd }
  /** Admitted more than 48 h ago on the store's clock, no longer held, and without a line; nothing was changed. */
  | { readonly outcome: "stale" }
  /** The account does not exist (a store that lost data). */
  | { readonly outcome: "unknown_account" };

/** A settlement without hold, mark and line is refused when its admission is older than this on the store's clock. */
export const SETTLE_HORIZON_MS = 48 * 3_600_000;
/**
 * How long a settled mark lives: twice the horizon, so that a replay that comes after the mark is gone, and does not find its line, is
 * stale, unless the clock was ahead.
 */
export const SETTLED_MARK_MS = 2 * SETTLE_HORIZON_MS;
/**
 * Among how many lines a settlement without hold and mark looks for lines of its request. After a loss of data, each charge that is sent again pays for this: with 64
 * lines a quarter of a millisecond of Redis, with 512 two.
 */
export const LATE_LINES_MAX = 64;
/** The most marks that are looked up at once, so that no other call waits long. */
export const SETTLED_IDS_MAX = 128;
/** The most expired holds that one operation sweeps. */
export const SWEEP_MAX = 16;
/** How long after its end an entitlement stays among those that admission looks through. */
export const ENTITLEMENT_LINGER_MS = SETTLE_HORIZON_MS;
/** The most requests in flight per account, over all its groups and keys. */
export const ACCOUNT_CONCURRENCY_MAX = 1_000;
