/** The records that a store keeps: accounts, keys, entitlements, codes, ledger lines, sums per day. */
import type { CodeHash } from "../values/code.ts";
import type { KeyState } from "../values/idempotency.ts";
import type { AccountTag, KeyHash } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { BudgetCounts } from "./limits/budgets.ts";
import type { Notice, WaitingNotices } from "./notices.ts";
import type { UsageCounts } from "./sums/token-sums.ts";

export interface Account {
  readonly id: string;
  readonly tag: AccountTag;
  readonly name: string;
  readonly plan: string;
  /** From 1; grows with every change of the plan, as Key.revision does. */
  readonly planRevision: number;
  /**
   * Limits of all its keys together, a text of `limits.ts` with budgets only; empty: none. With their revision, from 0.
   */
  readonly limits: string;
  readonly limitsRevision: number;
  /**
   * `suspended`: its keys are refused until it is resumed. `closed` is final: its keys are revoked, and it takes no
   * more funds.
   */
  readonly status: "normal" | "suspended" | "closed";
  /** Labels that operators set: values by name. */
  readonly labels: Readonly<Record<string, string>>;
  /** The revisions of its status, of its labels and of its name, each as Key.revision. */
  readonly revision: number;
  readonly labelsRevision: number;
  readonly nameRevision: number;
  readonly balance: NanoUsd;
  readonly held: NanoUsd;
  /** Everything ever charged to the balance, and everything ever topped up or adjusted. */
  readonly spent: NanoUsd;
  readonly topped: bigint;
  /** The number of its last ledger line; 0 before the first. */
  readonly lines: number;
  /** The balance below which a notice is sent; undefined: as the configuration says. */
  readonly notifyBelow: NanoUsd | undefined;
  /** Revision of the threshold, as planRevision; 0 before it was ever set. */
  readonly notifyRevision: number;
  readonly createdAtMs: number;
}

/** A change of an account; absent members stay as they are. */
export interface AccountChange {
  readonly status?: "normal" | "suspended";
  /** Labels to set, by name; an empty value removes the label. In a replayed change: all labels of the account. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** The most labels of an account. */
export const LABELS_MAX = 16;

/** An account's name and tag. */
export interface AccountName {
  readonly name: string;
  readonly tag: AccountTag;
}

export interface Key {
  readonly id: string;
  readonly tag: AccountTag;
  readonly group: string;
  /** A name for people; may be empty. */
  readonly name: string;
  /** `revoked` is final. */
  readonly status: "normal" | "suspended" | "revoked";
  /** The first instant at which it is refused, milliseconds on the store's clock; undefined: it does not expire. */
  readonly expiresAtMs: number | undefined;
  /** Until when the value before the last rotation works; undefined: the key was never rotated. */
  readonly previousUntilMs: number | undefined;
  readonly createdAtMs: number;
  /**
   * 1 at first; then the store's time at the last change, milliseconds, and always more than before. A replayed write
   * does not undo later changes. If a store has lost changes, the next one therefore gets a higher revision than they
   * had.
   */
  readonly revision: number;
  /** Limits set by its owner, and caps set by the operator, as texts of `limits.ts`; empty: none. */
  readonly limits: string;
  readonly caps: string;
  /**
   * The revision of its last rotation, 0 before the first. A replayed change and a replayed rotation do not override
   * each other.
   */
  readonly rotation: number;
}

/** The last admitted request of a key. */
export interface KeyUse {
  readonly keyId: string;
  /** The store's time. */
  readonly atMs: number;
  /** The client's address, for IPv6 its network; empty: unknown. */
  readonly from: string;
  /** The client program, as it names itself; empty if it does not. */
  readonly by: string;
}

/** A key in a listing. No `lastUse`: it was not used, as far as is known. */
export interface ListedKey extends Key {
  readonly lastUse?: KeyUse;
  /** What is spent and held of its budgets, by `budgetField`. */
  readonly budgets: ReadonlyMap<string, BudgetCounts>;
}

/** The facts of a new key. */
export interface NewKeyRecord extends Pick<Key, "id" | "group"> {
  readonly hash: KeyHash;
  readonly name?: string | undefined;
  readonly expiresAtMs?: number | undefined;
}

/** A new value for a key, and how long the old one keeps working: a time from now, or in a replay an instant. */
export type KeyRotation =
  | { readonly hash: KeyHash; readonly overlapMs: number }
  | { readonly hash: KeyHash; readonly untilMs: number };

/** A change of a key; absent members stay as they are. */
export interface KeyChange {
  readonly group?: string;
  readonly name?: string;
  readonly status?: "normal" | "suspended";
  /** "never": it no longer expires. */
  readonly expiresAtMs?: number | "never";
  /** Each replaces the whole set; empty: none. */
  readonly limits?: string;
  readonly caps?: string;
}

export interface Entitlement {
  readonly id: string;
  /** The card kind's name; undefined for a card that was given before kinds were stored. */
  readonly card: string | undefined;
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
  /**
   * Position in the account's ledger, from 1, without gaps. An opening line has the number of the last archived line.
   */
  readonly seq: number;
  readonly atMs: number;
  /** `unreadable`: the stored text is not a valid line; its figures are 0. */
  readonly kind: "usage" | "absorbed" | "topup" | "adjust" | "card" | "opening" | "unreadable";
  /**
   * Accounts of the double entry: `acct_<TAG>`, `ent_<id>`, `cards:<kind>`, `gifts:<kind>`, `revenue:<group>`, `topup`,
   * `adjust`, `absorbed:<cause>`, ...
   */
  readonly debit: string;
  readonly credit: string;
  readonly amount: NanoUsd;
  /** The account's balance after this line. */
  readonly balance: bigint;
  /** Request id, payment id, adjustment id, code id, or the id of a gift. */
  readonly reference: string;
  readonly group: string;
  readonly model: string;
  readonly key: string;
  /** See SettleAsk.memo; for top-ups and adjustments a note; for an opening line what was archived (opening.ts). */
  readonly memo: string;
}

/** What a key may see and use: read without side effects, for `GET /v1/models` and for body faults. */
export interface KeyView {
  readonly key: Key;
  readonly account: {
    readonly id: string;
    readonly name: string;
    readonly plan: string;
    readonly balance: NanoUsd;
    readonly limits: string;
  };
  /** Entitlements that have not ended, earliest to expire first. */
  readonly entitlements: readonly Entitlement[];
  /**
   * What is spent and held of its budgets and of the account's, by `budgetField`. Budgets that were never used are
   * missing.
   */
  readonly budgets: ReadonlyMap<string, BudgetCounts>;
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

/** The facts of new codes besides their worth. */
export interface CodeFacts extends CardFacts {
  /**
   * The first instant, on the store's clock, at which they can no longer be redeemed; undefined: they do not expire.
   */
  readonly expiresAtMs?: number | undefined;
  /** The id of their batch; undefined: none. */
  readonly batch?: string | undefined;
}

/** Codes that were made together, under a label for people. */
export interface CodeBatch extends CardFacts {
  readonly id: string;
  readonly label: string;
  /** How many codes were asked for. */
  readonly count: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | undefined;
}

export interface Code extends CardFacts {
  readonly id: string;
  readonly expiresAtMs: number | undefined;
  readonly batch: string | undefined;
  /** `claimed`: an account has it, and is about to be credited. `redeemed` and `void` are final. */
  readonly state: "unused" | "void" | "claimed" | "redeemed";
  readonly createdAtMs: number;
  /** The account that claimed it, and when. */
  readonly tag: AccountTag | undefined;
  readonly claimedAtMs: number | undefined;
}

export type RedeemAnswer =
  /** `again`: the same account has redeemed it before, and nothing changed. The entitlement's id is the code's. */
  | { readonly outcome: "redeemed" | "again"; readonly code: Code; readonly entitlement: Entitlement }
  /** Another account has it, the operator has voided it, or it has expired. */
  | { readonly outcome: "used" | "void" | "expired" }
  | { readonly outcome: "unknown_code" | "unknown_account" | "closed_account" };

/** A code, and what the redeeming account got for it. */
export interface Redemption {
  readonly hash: CodeHash;
  readonly tag: AccountTag;
  readonly code: Code;
  readonly entitlement: Entitlement;
}

/** The most codes that one call may make. */
export const CODES_MAX = 1_000;

/** What was charged on one UTC day (of admission) for one group, model and key. */
export interface DaySum {
  /** YYYY-MM-DD. */
  readonly day: string;
  readonly group: string;
  readonly model: string;
  readonly key: string;
  readonly amount: NanoUsd;
  /** All 0 for charges from before counts were stored. */
  readonly counts: UsageCounts;
  /** What upstreams are expected to bill for it, and what was absorbed; 0 for charges from before costs were stored. */
  readonly cost: bigint;
  readonly absorbed: bigint;
}

/**
 * What one model of an upstream is expected to bill for one UTC day (of admission), and what was charged for it.
 * Requests and tokens are those on the upstream's bill: they include undelivered answers and failed attempts.
 */
export interface UpstreamDaySum {
  /** YYYY-MM-DD. */
  readonly day: string;
  readonly upstream: string;
  /** The model's name at the upstream. */
  readonly model: string;
  /** What clients were charged. */
  readonly amount: NanoUsd;
  readonly counts: UsageCounts;
  readonly cost: bigint;
  readonly absorbed: bigint;
}

/** The most days that one reading of day sums may span. */
export const DAYS_MAX = 366;

/** The whole state of one account, in one canonical form for both stores; for tests. */
export interface AccountState {
  readonly account: Account;
  readonly seq: number;
  /** Requests in flight: all, and by limit scope (`group` or `group/keyId`). */
  readonly inFlight: number;
  readonly inFlightByScope: Readonly<Record<string, number>>;
  readonly keys: readonly Key[];
  /** Former values of keys, by hash. */
  readonly formerKeys: readonly { readonly hash: string; readonly id: string; readonly untilMs: number }[];
  readonly entitlements: readonly Entitlement[];
  readonly holds: readonly {
    readonly requestId: string;
    readonly amount: NanoUsd;
    readonly expiresAtMs: number;
    readonly scope: string;
    readonly entitlement: string | undefined;
  }[];
  /** Requests in flight of keys with a concurrency limit, by key id. */
  readonly inFlightByKey: Readonly<Record<string, number>>;
  /** Figures of budgets, by `budgetField`. */
  readonly budgets: Readonly<Record<string, BudgetCounts>>;
  /** Buckets by name, as stored: debt in tokens x 60,000, and the instant at which it was true. */
  readonly buckets: Readonly<Record<string, { readonly debt: number; readonly atMs: number }>>;
  readonly settled: readonly string[];
  readonly ledger: readonly LedgerLine[];
  readonly payments: readonly string[];
  /** Waiting notices, and for notices that are sent once the latest instance sent, by `kind:name`. */
  readonly notices: Pick<WaitingNotices, "taken" | "last"> & {
    readonly waiting: readonly Notice[];
    readonly marks: Readonly<Record<string, number>>;
  };
  /** Sums per day: day -> (`group|model|key` -> nano-dollars charged). */
  readonly days: Readonly<Record<string, Readonly<Record<string, NanoUsd>>>>;
  /** The same for requests and tokens; charges from before counts were stored have none. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, UsageCounts>>>>;
  /** The same for costs: `cost absorbed`; and for upstreams: day -> (`upstream model` -> all stored figures). */
  readonly costs: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly upstreams: Readonly<Record<string, Readonly<Record<string, Omit<UpstreamDaySum, "day">>>>>;
  /** Idempotency keys that have not ended, by the hash of the key. */
  readonly idempotency: readonly {
    readonly key: string;
    readonly requestId: string;
    readonly fingerprint: string;
    readonly state: KeyState;
    readonly untilMs: number;
  }[];
}
