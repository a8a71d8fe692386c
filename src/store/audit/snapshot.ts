/**
 * What a check of an account looks at, and what it answers. A snapshot is a portion of the account at one instant, and
 * the sums of its ledger at that same instant; a large account comes in many portions, so each check judges only what
 * its portion has.
 */

import type { AccountFigures } from "../figures.ts";
import type { UsageTotal } from "../sums/day-sums.ts";

/** Something that is not as it must be. */
export interface Finding {
  /** The check's name, or the walk's: what programs match on. */
  readonly check: string;
  /** The line's number; undefined for what concerns the account as a whole. */
  readonly line: number | undefined;
  /** The card, request, payment, key or field that it is about; undefined for the account itself. */
  readonly about?: string | undefined;
  /** One sentence, ends with a full stop. */
  readonly what: string;
}

/** A judgement over one portion. Pure: it reads nothing by itself. */
export type AccountCheck = (snapshot: AccountSnapshot) => Iterable<Finding>;

/**
 * A judgement over what the lines have names of: marks and records that never change once they are there, so that they may
 * be of a later instant than the lines.
 */
export type NameCheck = (named: NamedRecords) => Iterable<Finding>;

/** What the lines say of a card; a card without a quota has 0. */
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
  /** What its settlement asked for: charged and absorbed above the hold. Undefined where the lines do not say. */
  readonly owed: bigint | undefined;
}

/** A payment in the ledger. */
export interface LedgerPayment {
  readonly id: string;
  readonly line: number;
  /** Negative where funds were taken. */
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
  /** What the lines leave in the account, took from it for use, and brought to it by hand. */
  readonly balance: bigint;
  readonly spent: bigint;
  readonly topped: bigint;
  /** Top-ups and adjustments, archived ones included; undefined where the archive does not say. */
  readonly payments: number | undefined;
  readonly cards: ReadonlyMap<string, CardSums>;
}

/** Requests and payments of a page of lines, and figures in which their marks and records are. */
interface NamedRecords {
  readonly figures: Pick<AccountFigures, "marks" | "payments" | "storeTimeMs">;
  readonly requests: readonly LedgerRequest[];
  readonly payments: readonly LedgerPayment[];
}

/** A portion of an account, and the sums of its lines up to the same instant. */
export interface AccountSnapshot {
  /** Its own figures are in every portion; cards, scopes, keys, marks and holds are those that were asked for. */
  readonly figures: AccountFigures;
  readonly lines: LedgerSums;
  /** Under which name the account was found; with the first portion. */
  readonly foundAs: string | undefined;
  /** Codes of the cards: whose their own records say that they are; a card that was given has none. */
  readonly codes: ReadonlyMap<string, { readonly tag: string | undefined; readonly state: string } | undefined>;
  /** Sums per day, and whether a part of the lines that they follow from is in the archive. */
  readonly fields: readonly FieldSums[];
  readonly archived: boolean;
  /** With the last portion, where lines are archived: sums of all days by group. */
  readonly groups: readonly GroupSums[];
}

export interface GroupSums {
  readonly group: string;
  readonly kept: UsageTotal;
  readonly lines: UsageTotal;
}
