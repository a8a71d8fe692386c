/**
 * What an audit reads of an account: figures of one instant, in bounded portions, so that even a large account delays
 * neither the store nor the process. The number of that instant's last line comes with them. The audit sums up the
 * ledger to the same instant, so concurrent changes never look like errors.
 */
import type { AccountTag } from "../values/key.ts";
import type { Account, AccountName, Entitlement, Page } from "./records.ts";
import type { UsageTotal } from "./sums/day-sums.ts";

/** The most names of one kind in one portion. */
export const FIGURES_MAX = 200;
/** The most days in one portion: the days on which a charge may still arrive. */
export const FIGURES_DAYS_MAX = 8;
/** The most fields of the sums per day in one portion; each has ten figures for each day. */
export const FIGURES_FIELDS_MAX = 50;

/** What a portion contains besides the account's own figures. A part that is left out is not read. */
export interface FiguresAsk {
  /** Ids of cards. */
  readonly cards?: readonly string[];
  /** Ids of requests whose settled marks are wanted. */
  readonly requests?: readonly string[];
  /** Ids of payments. */
  readonly payments?: readonly string[];
  /** Whether the number of all payments is wanted. The embedded store counts them one by one. */
  readonly paymentCount?: boolean;
  /** Limit scopes whose requests in flight are wanted. */
  readonly scopes?: readonly string[];
  readonly keys?: readonly KeyName[];
  /** Fields of the sums per day (`dayField`), summed over these UTC days. */
  readonly spent?: { readonly days: readonly string[]; readonly fields: readonly string[] };
  /** Whether all holds are wanted; an account has at most ACCOUNT_CONCURRENCY_MAX. */
  readonly holds?: boolean;
}

export interface KeyName {
  readonly id: string;
  readonly hash: string;
}

/** Figures of one instant. A name that was asked for and does not exist has the value undefined. */
export interface AccountFigures {
  readonly account: Account;
  /** Number of lines that the account has counted, and the number of the last existing line; 0 without any. */
  readonly seq: number;
  readonly lastLine: number;
  /** Requests in flight that the account has counted. */
  readonly inFlight: number;
  readonly storeTimeMs: number;
  /** A change was begun and not finished. Always false in a store that rolls a failed change back. */
  readonly unfinished: boolean;
  readonly cards: ReadonlyMap<string, CardFigures | undefined>;
  /** By request: the amount in its settled mark. */
  readonly marks: ReadonlyMap<string, bigint | undefined>;
  /** By payment: its amount, negative if funds were taken. */
  readonly payments: ReadonlyMap<string, bigint | undefined>;
  /** Number of all payments; undefined when it was not asked for. */
  readonly paymentCount: number | undefined;
  readonly scopes: ReadonlyMap<string, number>;
  readonly keys: readonly KeyFigures[];
  readonly spent: ReadonlyMap<string, UsageTotal>;
  readonly holds: readonly HoldFigures[] | undefined;
  /** With the holds: when the store will treat each as expired. */
  readonly expiries: ReadonlyMap<string, number>;
  /** Names of records with invalid contents, such as an amount that is not a number; they count as 0. */
  readonly unreadable: readonly string[];
}

export interface CardFigures extends Entitlement {
  /** Whether admission looks at it. */
  readonly listed: boolean;
}

/** The hash under which a key's id is found, and the id that is found under that hash. */
export interface KeyFigures extends KeyName {
  readonly hashOfId: string | undefined;
  readonly idOfHash: string | undefined;
}

export interface HoldFigures {
  readonly requestId: string;
  readonly amount: bigint;
  readonly expiresAtMs: number;
  readonly scope: string;
  readonly entitlement: string | undefined;
}

/** A settled mark that does not prove its line by itself; the line may still be in the ledger. */
export interface UnprovenMark {
  readonly tag: AccountTag;
  readonly requestId: string;
}

export interface MarksPage extends Page<UnprovenMark> {
  /** Accounts found on the way that have lines, or have lost their hash, and that their own names do not lead to. */
  readonly unlisted?: readonly AccountName[];
}

/** A page of names of what an account has. A name may appear twice. */
export interface RecordNames {
  readonly cards: readonly string[];
  readonly scopes: readonly string[];
  readonly keys: readonly KeyName[];
  /** Where the next page begins; undefined on the last one. */
  readonly next: string | undefined;
}
