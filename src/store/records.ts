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
  /** Limits of all its keys together, a text of `limits.ts` with budgets alone; empty: none. And their revision, from 0. */
  readonly limits: string;
  readonly limitsRevision: number;
  /** `suspended`: its keys are refused until it is resumed. `closed` is final: its keys are revoked, it takes no funds any more. */
  readonly status: "normal" | "suspended" | "closed";
  /** What operators note of it: a value by name, by name. */
  readonly labels: Readonly<Record<string, string>>;
  /** The revisions of its status, of its labels and of its name: as Key.revision. */
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
  /** Below which balance there is a notice; undefined: as the configuration says. */
  readonly notifyBelow: NanoUsd | undefined;
  /** As planRevision, of the threshold; 0 before it was ever set. */
  readonly notifyRevision: number;
  readonly createdAtMs: number;
}

/** What becomes of an account; what is absent stays as it is. */
export interface AccountChange {
  readonly status?: "normal" | "suspended";
  /** Labels to set, by name; an empty value takes the label away. Where the change is done again: all labels that it has. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Labels that an account has at most. */
export const LABELS_MAX = 16;

/** Where an account is found. */
export interface AccountName {
  readonly name: string;
  readonly tag: AccountTag;
}

export interface Key {
  readonly id: string;
  readonly tag: AccountTag;
  readonly group: string;
  /** What people call it; empty: nothing. */
  readonly name: string;
  /** `revoked` is final. */
  readonly status: "normal" | "suspended" | "revoked";
  /** The first instant at which it is refused, milliseconds on the store's clock; undefined: it has no end. */
  readonly expiresAtMs: number | undefined;
  /** Until when the value works that the key had before its last rotation; undefined: it has always had this one. */
  readonly previousUntilMs: number | undefined;
  readonly createdAtMs: number;
  /**
   * From 1; then the store's time at the last change, milliseconds, and always more than before. A write that is done again
   * changes nothing of what was changed since. A store that has lost changes so gives the next one a higher revision than they
   * had.
   */
  readonly revision: number;
  /** Limits that its owner has set, and caps that the operator has, as texts of `limits.ts`; empty: none. */
  readonly limits: string;
  readonly caps: string;
  /** The same of its last rotation, 0 before the first: a change and a rotation that are done again do not outdo each other. */
  readonly rotation: number;
}

/** The last request of a key that was admitted. */
export interface KeyUse {
  readonly keyId: string;
  /** The store's time. */
  readonly atMs: number;
  /** The address, of IPv6 its network; empty where it is not known. */
  readonly from: string;
  /** The program that asked, by its own word; empty where it says none. */
  readonly by: string;
}

/** A key in a listing; without `lastUse` it was not used, as far as is known. */
export interface ListedKey extends Key {
  readonly lastUse?: KeyUse;
  /** What is spent and held of its budgets, by `budgetField`. */
  readonly budgets: ReadonlyMap<string, BudgetCounts>;
}

/** What a key is made of. */
export interface NewKeyRecord extends Pick<Key, "id" | "group"> {
  readonly hash: KeyHash;
  readonly name?: string | undefined;
  readonly expiresAtMs?: number | undefined;
}

/** A new value for a key, and how long the old one works beside it: from now, or where the rotation is done again until then. */
export type KeyRotation =
  | { readonly hash: KeyHash; readonly overlapMs: number }
  | { readonly hash: KeyHash; readonly untilMs: number };

/** What becomes of a key; what is absent stays as it is. */
export interface KeyChange {
  readonly group?: string;
  readonly name?: string;
  readonly status?: "normal" | "suspended";
  /** "never": it has no end any more. */
  readonly expiresAtMs?: number | "never";
  /** Each replaces the whole set; empty: none. */
  readonly limits?: string;
  readonly caps?: string;
}

export interface Entitlement {
  readonly id: string;
  /** The card kind's name; undefined of one that was given before kinds were kept. */
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
  /** Position in the account's ledger, from 1, without gaps; an opening line has the last archived one's. */
  readonly seq: number;
  readonly atMs: number;
  /** `unreadable`: the stored text is no line any more; its figures are 0. */
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
  /** Request id, payment id, adjustment id, code id or a gift's id. */
  readonly reference: string;
  readonly group: string;
  readonly model: string;
  readonly key: string;
  /** See SettleAsk.memo; for topups and adjustments a note; for an opening line what was archived (opening.ts). */
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
  /** What is spent and held of its budgets and of the account's, by `budgetField`; those that were never used are not there. */
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

/** What codes are made with beside what they are worth. */
export interface CodeFacts extends CardFacts {
  /** The first instant, on the store's clock, at which nobody can redeem them any more; undefined: there is none. */
  readonly expiresAtMs?: number | undefined;
  /** The id of their batch; undefined: they are in none. */
  readonly batch?: string | undefined;
}

/** Codes that were made together, under a name for people. */
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
  /** Another account has it, the operator has voided it, or its last day is over. */
  | { readonly outcome: "used" | "void" | "expired" }
  | { readonly outcome: "unknown_code" | "unknown_account" | "closed_account" };

/** A code and what the account that redeemed it has of it. */
export interface Redemption {
  readonly hash: CodeHash;
  readonly tag: AccountTag;
  readonly code: Code;
  readonly entitlement: Entitlement;
}

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
  /** 0 throughout for what was charged before counts were kept. */
  readonly counts: UsageCounts;
  /** What upstreams are expected to bill for it, and what was absorbed; 0 for what was charged before costs were kept. */
  readonly cost: bigint;
  readonly absorbed: bigint;
}

/**
 * What one model of an upstream is expected to bill for one UTC day (of admission), and what was charged for it. Requests and
 * tokens are those on its bill: answers that nobody got and failed tries are among them.
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

/** Days that one reading of day sums may span. */
export const DAYS_MAX = 366;

/** The whole state of one account, in one canonical form for both stores; for tests. */
export interface AccountState {
  readonly account: Account;
  readonly seq: number;
  /** Requests in flight: all, and by limit scope (`group` or `group/keyId`). */
  readonly inFlight: number;
  readonly inFlightByScope: Readonly<Record<string, number>>;
  readonly keys: readonly Key[];
  /** Values that keys had before, by hash. */
  readonly formerKeys: readonly { readonly hash: string; readonly id: string; readonly untilMs: number }[];
  readonly entitlements: readonly Entitlement[];
  readonly holds: readonly {
    readonly requestId: string;
    readonly amount: NanoUsd;
    readonly expiresAtMs: number;
    readonly scope: string;
    readonly entitlement: string | undefined;
  }[];
  /** Requests at once of keys that have a limit of them, by key id. */
  readonly inFlightByKey: Readonly<Record<string, number>>;
  /** Figures of budgets, by `budgetField`. */
  readonly budgets: Readonly<Record<string, BudgetCounts>>;
  /** Buckets by name, as stored: debt in tokens x 60,000, and the instant it was true. */
  readonly buckets: Readonly<Record<string, { readonly debt: number; readonly atMs: number }>>;
  readonly settled: readonly string[];
  readonly ledger: readonly LedgerLine[];
  readonly payments: readonly string[];
  /** Notices that wait, and the latest that was told of what is told once, by `kind:name`. */
  readonly notices: Pick<WaitingNotices, "taken" | "last"> & {
    readonly waiting: readonly Notice[];
    readonly marks: Readonly<Record<string, number>>;
  };
  /** Per-day sums: day -> (`group|model|key` -> nano-dollars charged). */
  readonly days: Readonly<Record<string, Readonly<Record<string, NanoUsd>>>>;
  /** The same, of requests and tokens; what was charged before counts were kept has none. */
  readonly counts: Readonly<Record<string, Readonly<Record<string, UsageCounts>>>>;
  /** The same, of costs: `cost absorbed`; and of upstreams: day -> (`upstream model` -> all that is kept of it). */
  readonly costs: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly upstreams: Readonly<Record<string, Readonly<Record<string, Omit<UpstreamDaySum, "day">>>>>;
  /** Idempotency keys that have not ended, by the key's hash. */
  readonly idempotency: readonly {
    readonly key: string;
    readonly requestId: string;
    readonly fingerprint: string;
    readonly state: KeyState;
    readonly untilMs: number;
  }[];
}
