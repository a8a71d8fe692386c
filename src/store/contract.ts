/**
 * What Tollgate asks of a store. Two stores keep it, embedded (node:sqlite and memory) and Redis (Lua scripts), and one
 * suite of tests holds both to it; a differential test drives both with the same operations and compares `inspect`.
 *
 * Rules of every operation: it is atomic within one account; it may be sent again with the same id when its outcome is
 * unknown; the store's own clock is the only clock of buckets, cards and holds; amounts are NanoUsd here and decimal
 * strings inside; a store that cannot answer rejects with StoreError and never says "no such key". A `revision` or
 * `fromMs` marks a write that is done again: it counts only above the record's revision, a revocation in any case.
 */
import type { GroupKind } from "../values/catalog.ts";
import type { CodeHash } from "../values/code.ts";
import type { AccountTag, KeyHash } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";

/** The store gave no usable answer (away, slow, read-only, out of memory): the outcome is unknown. */
export class StoreError extends Error {
  override readonly name = "StoreError";
  /** `unavailable`: try later. `older`: the store lost data and an operator must confirm. */
  readonly kind: "unavailable" | "older";

  constructor(kind: "unavailable" | "older", message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

// ---------------------------------------------------------------------------------------------------- admission

/** What one group that serves the model would ask of this request; the script picks the key's group's. */
export interface GroupTerms {
  readonly group: string;
  readonly kind: GroupKind;
  /** The worst cost of the request as asked. */
  readonly holdFull: NanoUsd;
  /** The worst cost of the least useful form of the request; at most holdFull. */
  readonly holdMin: NanoUsd;
  /** Requests per minute, or undefined for no such limit. */
  readonly requestsPerMinute: number | undefined;
  /** Tokens per minute, or undefined. */
  readonly tokensPerMinute: number | undefined;
  /** Requests in flight. */
  readonly concurrency: number;
  /** Whether the limits above count per key instead of per account. */
  readonly perKey: boolean;
}

export interface AdmitAsk {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  readonly keyHash: KeyHash;
  /** Plans that list the model. */
  readonly plans: readonly string[];
  /** Every group that serves the model. */
  readonly groups: readonly GroupTerms[];
  /** Input tokens taken from the token bucket now; corrected at settlement. */
  readonly inputTokens: number;
  /** How long the hold lives from now on the store's clock. */
  readonly holdTtlMs: number;
  /** True when an earlier try of this request already took its place in the request bucket (promise 5). */
  readonly again: boolean;
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
  /** The entitlement that pays, or undefined when the balance does. */
  readonly entitlement: string | undefined;
  /** Whether the entitlement that pays has no quota (no hold, no clamp, a ledger line of 0). */
  readonly unmetered: boolean;
  /** The store's clock at admission, milliseconds since the epoch: the charge's day and the limit of its replay. */
  readonly storeTimeMs: number;
  readonly limits: LimitStates;
}

export type AdmitRefusalCause =
  | "unknown_key"
  | "revoked_key"
  | "not_in_plan"
  | "group_mismatch"
  | "no_entitlement"
  | "quota_used"
  | "insufficient_balance"
  | "requests"
  | "tokens"
  | "concurrency";

export interface AdmitRefused {
  readonly outcome: "refused";
  readonly cause: AdmitRefusalCause;
  /** The key's group, once the key is known. */
  readonly group: string | undefined;
  /** For requests and tokens: milliseconds until the same ask would pass, exact; else undefined. */
  readonly retryAfterMs: number | undefined;
  readonly limits: LimitStates;
}

// ---------------------------------------------------------------------------------------------------- settlement

/** How the request ended for the money. */
export interface SettleAsk {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  /** Admitted.storeTimeMs of this request. Older than 48 h: refused as stale. */
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
  /** What an attempt cost the operator that nobody pays for; written as its own line when above 0. */
  readonly absorbed: NanoUsd;
  readonly absorbedCause: string | undefined;
  readonly upstream: string | undefined;
  /** Input tokens that admission took from the bucket, and those that were really consumed (input and output). */
  readonly tokensTaken: number;
  readonly tokensUsed: number;
  readonly tokensPerMinute: number | undefined;
  /** True when the request was refused or failed before anything was delivered: the tokens go back whole. */
  readonly voided: boolean;
  /** Facts for the ledger line: usage, unit prices, multiplier, catalog version, who counted. A flat JSON object. */
  readonly memo: string;
}

export type SettleAnswer =
  /** Posted or voided now. `charged` is what the client paid; `absorbed` what neither hold nor free funds covered. */
  | { readonly outcome: "settled"; readonly charged: NanoUsd; readonly absorbed: NanoUsd; readonly balance: NanoUsd }
  /** This request was settled before with the same amount. */
  | { readonly outcome: "duplicate" }
  /** This request was settled before with another amount; nothing was changed. */
  | { readonly outcome: "mismatch"; readonly recorded: NanoUsd }
  /** Admitted more than 48 h ago on the store's clock; nothing was changed. */
  | { readonly outcome: "stale" }
  /** The account does not exist (a store that lost data). */
  | { readonly outcome: "unknown_account" };

/** A settlement is refused when its admission is older than this on the store's clock. */
export const SETTLE_HORIZON_MS = 48 * 3_600_000;
/** How long a settled mark lives: twice the horizon, so that no replay can come after it is gone. */
export const SETTLED_MARK_MS = 2 * SETTLE_HORIZON_MS;
/** Expired holds that one operation sweeps at most. */
export const SWEEP_MAX = 16;
/** How long after its end an entitlement stays among those that admission looks through. */
export const ENTITLEMENT_LINGER_MS = SETTLE_HORIZON_MS;
/** Requests in flight per account over all its groups and keys. */
export const ACCOUNT_CONCURRENCY_MAX = 1_000;

// ---------------------------------------------------------------------------------------------------- records

export interface Account {
  readonly id: string;
  readonly tag: AccountTag;
  readonly name: string;
  readonly plan: string;
  /** From 1; grows by one with every change of the plan, as Key.revision does. */
  readonly planRevision: number;
  readonly balance: NanoUsd;
  readonly held: NanoUsd;
  /** Everything ever charged to the balance, and everything ever topped up or adjusted. */
  readonly spent: NanoUsd;
  readonly topped: bigint;
  readonly createdAtMs: number;
}

export interface Key {
  readonly id: string;
  readonly tag: AccountTag;
  readonly group: string;
  readonly status: "normal" | "revoked";
  readonly createdAtMs: number;
  /** Grows by one with every change; a replayed write with a lower revision changes nothing. */
  readonly revision: number;
}

export interface Entitlement {
  readonly id: string;
  readonly plan: string;
  readonly group: string;
  readonly fromMs: number;
  readonly untilMs: number;
  /** Undefined: no quota. */
  readonly quota: NanoUsd | undefined;
  readonly spent: NanoUsd;
  readonly held: NanoUsd;
}

export interface LedgerLine {
  /** Position in the account's ledger, from 1, without gaps. */
  readonly seq: number;
  readonly atMs: number;
  readonly kind: "usage" | "absorbed" | "topup" | "adjust" | "card";
  /**
   * Accounts of the double entry: `acct_<TAG>`, `ent_<id>`, `cards:<kind>`, `revenue:<group>`, `topup`, `adjust`,
   * `absorbed:<cause>`, ...
   */
  readonly debit: string;
  readonly credit: string;
  readonly amount: NanoUsd;
  /** The account's balance after this line. */
  readonly balance: bigint;
  /** Request id, payment id, adjustment id or code id. */
  readonly reference: string;
  readonly group: string;
  readonly model: string;
  readonly key: string;
  /** See SettleAsk.memo; for topups and adjustments a note. */
  readonly memo: string;
}

/** What a key may see and use: read without side effects, for `GET /v1/models` and for body faults. */
export interface KeyView {
  readonly key: Key;
  readonly account: { readonly id: string; readonly name: string; readonly plan: string; readonly balance: NanoUsd };
  /** Entitlements that have not ended, earliest to expire first. */
  readonly entitlements: readonly Entitlement[];
  readonly storeTimeMs: number;
}

/** A page of a listing, with the cursor of the next one. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | undefined;
}

/** What a code is worth, fixed when it is made: a later change of the configuration does not change what was sold. */
export interface CardFacts {
  /** The card kind's name. */
  readonly card: string;
  readonly plan: string;
  readonly group: string;
  readonly lastsMs: number;
  readonly starts: "at_redemption" | "after_previous";
  /** Undefined: no quota. */
  readonly quota: NanoUsd | undefined;
}

export interface Code extends CardFacts {
  readonly id: string;
  /** `claimed`: an account has it, what it is worth is on its way there. `redeemed` and `void` are final. */
  readonly state: "unused" | "void" | "claimed" | "redeemed";
  readonly createdAtMs: number;
  /** Whose it is, and since when, once it is claimed. */
  readonly tag: AccountTag | undefined;
  readonly claimedAtMs: number | undefined;
}

export type RedeemAnswer =
  /** `again`: the same account has redeemed it before; nothing changed. The entitlement's id is the code's. */
  | { readonly outcome: "redeemed" | "again"; readonly code: Code; readonly entitlement: Entitlement }
  /** Another account has it, or the operator has voided it. */
  | { readonly outcome: "used" | "void" }
  | { readonly outcome: "unknown_code" | "unknown_account" };

/** Codes that one call may make. */
export const CODES_MAX = 1_000;

/** What was charged on one UTC day (of admission) to one group, model and key. */
export interface DaySum {
  /** YYYY-MM-DD. */
  readonly day: string;
  readonly group: string;
  readonly model: string;
  readonly key: string;
  readonly amount: NanoUsd;
}

/** Days that one reading of day sums may span. */
export const DAYS_MAX = 366;

/** The whole state of one account, in one canonical form for both stores; for tests, audits and `verify`. */
export interface AccountState {
  readonly account: Account;
  readonly seq: number;
  /** Requests in flight: all, and by limit scope (`group` or `group/keyId`). */
  readonly inFlight: number;
  readonly inFlightByScope: Readonly<Record<string, number>>;
  readonly keys: readonly Key[];
  readonly entitlements: readonly Entitlement[];
  readonly holds: readonly {
    readonly requestId: string;
    readonly amount: NanoUsd;
    readonly expiresAtMs: number;
    readonly scope: string;
    readonly entitlement: string | undefined;
  }[];
  /** Buckets by name, as stored: debt in tokens x 60,000, and the instant it was true. */
  readonly buckets: Readonly<Record<string, { readonly debt: number; readonly atMs: number }>>;
  readonly settled: readonly string[];
  readonly ledger: readonly LedgerLine[];
  readonly payments: readonly string[];
  /** Per-day sums: day -> (`group|model|key` -> nano-dollars charged). */
  readonly days: Readonly<Record<string, Readonly<Record<string, NanoUsd>>>>;
}

// ---------------------------------------------------------------------------------------------------- the contract

export interface Store {
  /** Decides a request in one round trip: key, group, plan, funds, limits, hold. Idempotent by request id. */
  admit(ask: AdmitAsk): Promise<Admitted | AdmitRefused>;
  /** Posts or voids a hold exactly once and writes the ledger lines. Idempotent by request id. */
  settle(ask: SettleAsk): Promise<SettleAnswer>;

  /** What a key may use; undefined when the key is not known. Revoked keys are shown as such. */
  readKey(tag: AccountTag, hash: KeyHash): Promise<KeyView | undefined>;

  /** Creates an account; the tag is the caller's. `exists` when the tag or the name is taken. */
  createAccount(account: { tag: AccountTag; name: string; plan: string }): Promise<Account | "exists">;
  getAccount(tag: AccountTag): Promise<Account | undefined>;
  findAccount(name: string): Promise<Account | undefined>;
  /** Accounts by name, `limit` at most 200 a page. */
  listAccounts(cursor: string | undefined, limit: number): Promise<Page<Account>>;
  /** Setting the plan that an account has already changes nothing. */
  setPlan(tag: AccountTag, plan: string, revision?: number): Promise<Account | undefined>;

  /** Adds a key; sending the same key again changes nothing. Undefined when there is no such account. */
  createKey(tag: AccountTag, key: { id: string; hash: KeyHash; group: string }): Promise<Key | undefined>;
  listKeys(tag: AccountTag): Promise<readonly Key[]>;
  /** Counts from the next request on (promise 4). Undefined when there is no such key; revoked keys keep their group. */
  setKeyGroup(tag: AccountTag, keyId: string, group: string, revision?: number): Promise<Key | undefined>;
  /** Final. */
  revokeKey(tag: AccountTag, keyId: string, revision?: number): Promise<Key | undefined>;

  /**
   * Adds (or with a negative amount takes) funds, once per payment id. `mismatch`: the id was used with another amount.
   * `refused`: the balance less its holds would leave [0, NANO_USD_MAX].
   */
  credit(
    tag: AccountTag,
    payment: { id: string; amount: bigint; kind: "topup" | "adjust"; note: string },
  ): Promise<
    | { readonly outcome: "credited" | "duplicate"; readonly balance: NanoUsd }
    | { readonly outcome: "mismatch" | "refused" | "unknown_account" }
  >;

  /** Gives an account what a redeemed card holds, once per entitlement id. */
  grant(
    tag: AccountTag,
    entitlement: {
      id: string;
      /** The card kind's name, for the ledger. */
      card: string;
      plan: string;
      group: string;
      lastsMs: number;
      afterPrevious: boolean;
      fromMs?: number | undefined;
      quota: NanoUsd | undefined;
      reference: string;
    },
  ): Promise<Entitlement | undefined>;

  /** Cards that have not ended, earliest to expire first, and the store's clock. Undefined: no such account. */
  listCards(
    tag: AccountTag,
  ): Promise<{ readonly cards: readonly Entitlement[]; readonly storeTimeMs: number } | undefined>;

  /** Makes codes, at most CODES_MAX, each once per hash; sending the same again changes nothing. */
  createCodes(facts: CardFacts, codes: readonly { id: string; hash: CodeHash }[]): Promise<void>;
  /** Codes by id, `limit` at most 200 a page. */
  listCodes(cursor: string | undefined, limit: number): Promise<Page<Code>>;
  getCode(id: string): Promise<Code | undefined>;
  /** Voids a code that nobody has claimed, for good; the answer's state tells whether it is void. */
  voidCode(id: string): Promise<Code | undefined>;
  /**
   * Gives a code to an account: claimed by one account, credited once, whoever asks and whatever crashes in between
   * (invariant 11). Idempotent for the account that has it.
   */
  redeem(ask: {
    readonly hash: CodeHash;
    readonly tag: AccountTag;
    readonly fromMs?: number | undefined;
  }): Promise<RedeemAnswer>;
  /** Credits codes whose redemption was cut off after the claim, at most `limit`. @returns how many it brought to an end. */
  finishClaims(limit: number): Promise<number>;

  /**
   * Sums per day, by day, of an account from one UTC day to another, both included, at most DAYS_MAX days.
   * An unknown account has none.
   */
  readDays(tag: AccountTag, since: string, until: string): Promise<readonly DaySum[]>;

  /** Ledger lines of an account from `afterSeq` on, oldest first. */
  readLedger(tag: AccountTag, afterSeq: number, limit: number): Promise<readonly LedgerLine[]>;

  /** The whole state of an account; undefined when there is none. Sweeps nothing, changes nothing. */
  inspect(tag: AccountTag): Promise<AccountState | undefined>;

  /**
   * Which server, and which of its lives, answers for the store: another text means that acknowledged writes may be
   * lost (reliability 3.3). Rejects with StoreError while that cannot be told.
   */
  identity(): Promise<string>;
  /** Resolves when the store answers and is fit for use; rejects with StoreError and the reason. */
  check(): Promise<void>;
  close(): Promise<void>;
}
