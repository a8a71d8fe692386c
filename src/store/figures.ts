/**
 * What an audit reads of an account: figures of one instant, a bounded portion at a time, so that not even a large
 * account holds up the store or the process. The number of that instant's last line comes with them: an audit sums up
 * the ledger to the same instant, so nothing that moved meanwhile looks wrong.
 */
import type { AccountTag } from "../values/key.ts";
import type { Account, AccountName, Entitlement, Page } from "./records.ts";
import type { UsageTotal } from "./sums/day-sums.ts";

/** Names of one kind that one portion may ask for. */
export const FIGURES_MAX = 200;
/** Days that one portion may ask for: the days on which a charge may still come in. */
export const FIGURES_DAYS_MAX = 8;
/** Fields of the sums per day that one portion may ask for; each has ten figures on each day. */
export const FIGURES_FIELDS_MAX = 50;

/** What a portion is to hold beside the account's own figures. A part that is left out is not read. */
export interface FiguresAsk {
  /** Ids of cards. */
  readonly cards?: readonly string[];
  /** Ids of requests whose settled marks are wanted. */
  readonly requests?: readonly string[];
  /** Ids of payments. */
  readonly payments?: readonly string[];
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

/** Figures of one instant. A name that was asked for and is not there has the value undefined. */
export interface AccountFigures {
  readonly account: Account;
  /** Lines that the account has counted, and the number of the last one that is there; 0 without any. */
  readonly seq: number;
  readonly lastLine: number;
  /** Requests in flight that the account has counted. */
  readonly inFlight: number;
  readonly storeTimeMs: number;
  /** A change was begun and not ended; false where a store takes a failed change back whole. */
  readonly unfinished: boolean;
  readonly cards: ReadonlyMap<string, CardFigures | undefined>;
  /** By request: the amount that its settled mark has recorded. */
  readonly marks: ReadonlyMap<string, bigint | undefined>;
  /** By payment: its amount, negative where funds were taken. */
  readonly payments: ReadonlyMap<string, bigint | undefined>;
  /** Payments in all; undefined when none were asked for. */
  readonly paymentCount: number | undefined;
  readonly scopes: ReadonlyMap<string, number>;
  readonly keys: readonly KeyFigures[];
  readonly spent: ReadonlyMap<string, UsageTotal>;
  readonly holds: readonly HoldFigures[] | undefined;
  /** With the holds: when the store will look at each as expired. */
  readonly expiries: ReadonlyMap<string, number>;
  /** Names of records that do not hold what they must, such as an amount that is no number; they count as 0. */
  readonly unreadable: readonly string[];
}

export interface CardFigures extends Entitlement {
  /** Whether admission looks at it. */
  readonly listed: boolean;
}

/** Under which hash a key's id is found, and which id is found under its hash. */
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
export interface DoubtfulMark {
  readonly tag: AccountTag;
  readonly requestId: string;
}

export interface MarksPage extends Page<DoubtfulMark> {
  /** Accounts met on the way that have lines, or have lost their hash, and that their own names do not lead to. */
  readonly unlisted?: readonly AccountName[];
}

/** Names of what an account has, a page of them; a name may come twice. */
export interface RecordNames {
  readonly cards: readonly string[];
  readonly scopes: readonly string[];
  readonly keys: readonly KeyName[];
  /** Where the next page begins; undefined on the last one. */
  readonly next: string | undefined;
}
