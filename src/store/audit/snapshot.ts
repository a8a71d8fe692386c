/**
 * The input and output of a check of an account. A snapshot is a portion of the account at one instant, with the sums
 * of its ledger at the same instant. A large account comes in many portions, so each check judges only what its portion
 * contains.
 */

import type { AccountFigures } from "../figures.ts";
import type { UsageTotal } from "../sums/day-sums.ts";

/** Something that is wrong. */
export interface Finding {
  /** The name of the check, or of the finding of the walk: programs match on it. */
  readonly check: string;
  /** The line's number; undefined if it concerns the account as a whole. */
  readonly line: number | undefined;
  /** The card, request, payment, key or field that it is about; undefined for the account itself. */
  readonly about?: string | undefined;
  /** One sentence, with a full stop at the end. */
  readonly what: string;
}

/** Judges one portion. Pure: it reads nothing itself. */
export type AccountCheck = (snapshot: AccountSnapshot) => Iterable<Finding>;

/**
 * Judges marks and records whose names are in the lines. They never change after they are written, so they may be read
 * at a later instant than the lines.
 */
export type NameCheck = (named: NamedRecords) => Iterable<Finding>;

/** What the lines give for a card; a card without a quota has 0. */
export interface CardSums {
  readonly quota: bigint;
  readonly spent: bigint;
}

/** A request in the ledger. */
export interface LedgerRequest {
  readonly requestId: string;
  /** Its first line. */
  readonly line: number;
  readonly atMs: number;
  /** The amount of its settlement: charged, plus absorbed above the hold. Undefined when the lines do not say. */
  readonly owed: bigint | undefined;
}

/** A payment in the ledger. */
export interface LedgerPayment {
  readonly id: string;
  readonly line: number;
  /** Negative if funds were taken. */
  readonly amount: bigint;
}

/** A field of the sums per day, over all days. */
export interface FieldSums {
  readonly field: string;
  readonly kept: UsageTotal;
  readonly lines: UsageTotal;
}

/** Sums of the lines up to the instant of the figures. */
export interface LedgerSums {
  /** What the lines leave in the account, took from it for use, and added to it by hand. */
  readonly balance: bigint;
  readonly spent: bigint;
  readonly topped: bigint;
  /** Top-ups and adjustments, including archived ones; undefined when the archive does not say. */
  readonly payments: number | undefined;
  readonly cards: ReadonlyMap<string, CardSums>;
}

/** Requests and payments of a page of lines, and figures with their marks and records. */
interface NamedRecords {
  readonly figures: Pick<AccountFigures, "marks" | "payments" | "storeTimeMs">;
  readonly requests: readonly LedgerRequest[];
  readonly payments: readonly LedgerPayment[];
}

/** A portion of an account, and the sums of its lines up to the same instant. */
export interface AccountSnapshot {
  /**
   * The account's own figures are in every portion; cards, scopes, keys, marks and holds are those that were asked for.
   */
  readonly figures: AccountFigures;
  readonly lines: LedgerSums;
  /** The name under which the account was found; in the first portion. */
  readonly foundAs: string | undefined;
  /**
   * The codes of the cards, with their owner and state by their own records. A card that was given away has no code.
   */
  readonly codes: ReadonlyMap<string, { readonly tag: string | undefined; readonly state: string } | undefined>;
  /** Sums per day, and whether some of the lines behind them are in the archive. */
  readonly fields: readonly FieldSums[];
  readonly archived: boolean;
  /** In the last portion, when lines are archived: sums of all days by group. */
  readonly groups: readonly GroupSums[];
}

export interface GroupSums {
  readonly group: string;
  readonly kept: UsageTotal;
  readonly lines: UsageTotal;
}
