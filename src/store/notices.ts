/**
 * Notices: what happened to an account and somebody outside is to be told. They wait in the account's own record, written by
 * the same atomic step as what they tell of, and leave it in order. What is of no account waits in the gateway's own queue.
 */
import type { AccountTag } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { NoticeKind } from "../values/settings.ts";

/** Notices that wait for one account at most; beyond it the oldest goes, and the next one says how many went. */
export const NOTICES_MAX = 256;
/** Accounts that one page of `pageNotices` looks at, at most. */
export const NOTICES_PAGE_MAX = 200;

/** Where notices wait: with an account, or in the gateway's own queue. */
export type Outbox = AccountTag | typeof GATEWAY_OUTBOX;
export const GATEWAY_OUTBOX = "" as const;

/** What the configuration wants to be told of; a store is given none where there is no receiver, and then writes none. */
export interface NoticeTerms {
  readonly kinds: ReadonlySet<NoticeKind>;
  /** Of accounts that have no threshold of their own. */
  readonly balanceBelow: NanoUsd | undefined;
}

/** What a store has of the gateway for its notices. */
export interface NoticeWriter {
  /** Undefined: none is written. */
  readonly terms: () => NoticeTerms | undefined;
  /** Called when something waits; it may not be committed yet, and the store may not be called from here. */
  readonly noted: (outbox: Outbox) => void;
}

/** What is to be told. */
export interface NewNotice {
  readonly kind: NoticeKind;
  /** What it tells of: a request, a payment, a key's revision. With account and kind it names the notice for good. */
  readonly ref: string;
  /** Facts by name; amounts are nano-dollars and instants milliseconds, in digits. */
  readonly data: Readonly<Record<string, string>>;
}

/**
 * Under what a notice is told once. An account keeps one mark for each name, and of it the latest: what is not later has been
 * told of, so that a budget costs one mark and not one a day.
 */
export interface NoticeMark {
  /** What is told of, within the notice's kind: a card, or a scope and its span. */
  readonly name: string;
  /** Which time it is, a whole number above 0: the instant at which a span ends, or 1 for what happens once. */
  readonly latest: number;
}

export interface Notice extends NewNotice {
  /** Its place in the queue, from 1. */
  readonly seq: number;
  /** The store's time. */
  readonly atMs: number;
}

export interface WaitingNotices {
  /** The account's name; empty for the gateway's own queue. */
  readonly name: string;
  /** The last place that was taken: those between it and the first that waits were dropped. */
  readonly taken: number;
  /** The last place that was given. */
  readonly last: number;
  /** Oldest first. */
  readonly notices: readonly Notice[];
}

/** An account that has something waiting. */
export interface WaitingAccount {
  readonly tag: AccountTag;
  readonly name: string;
  readonly waiting: number;
}

/** How many wait, after what was dropped. */
export function waitingCount({ taken, last }: Pick<WaitingNotices, "taken" | "last">): number {
  return Math.min(last - taken, NOTICES_MAX);
}

/** What scripts are told: the threshold or a dash, and the kinds; empty: nothing is to be noted. */
export function termsText(terms: NoticeTerms | undefined): string {
  return terms === undefined ? "" : `${terms.balanceBelow ?? "-"} ${[...terms.kinds].join(" ")}`;
}

/** A notice as it is stored: a list of texts, facts in turn with their names. */
export function noticeTexts({ kind, ref, data }: NewNotice): string[] {
  return [kind, ref, ...Object.entries(data).flat()];
}

/** @param texts place, time, kind, ref, and facts. */
export function noticeOfTexts([seq, at, kind, ref = "", ...facts]: readonly string[]): Notice {
  const data: Record<string, string> = {};
  for (let i = 0; i + 1 < facts.length; i += 2) data[facts[i] as string] = facts[i + 1] as string;
  return { seq: Number(seq), atMs: Number(at), kind: kind as NoticeKind, ref, data };
}
