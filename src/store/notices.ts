/**
 * Notices: events of an account that are reported to a receiver outside. A notice waits in the account's own record,
 * written by the same atomic step as its event, and leaves it in order. Notices that belong to no account wait in the
 * gateway's own queue.
 */
import type { AccountTag } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { NoticeKind } from "../values/settings.ts";

/**
 * The most notices that wait for one account. Beyond it the oldest is dropped; the next notice says how many were
 * dropped.
 */
export const NOTICES_MAX = 256;
/** The most accounts that one page of `pageNotices` examines. */
export const NOTICES_PAGE_MAX = 200;

/** The shortest time before its end at which a card is reported: gateways check the cards every ten minutes. */
const CARD_LEAD_MIN_MS = 20 * 60_000;

/**
 * How long before its end a card is reported: as configured, but for a short card only in its last quarter. Otherwise a
 * card that lasts a day would be about to end as soon as it begins.
 * @param withinMs `notices.card_ends_within`
 */
export const leadOfEndMs = (lastsMs: number, withinMs: number): number =>
  Math.min(withinMs, Math.max(lastsMs / 4, CARD_LEAD_MIN_MS));

/** Where notices wait: in an account's record, or in the gateway's own queue. */
export type Outbox = AccountTag | typeof GATEWAY_OUTBOX;
export const GATEWAY_OUTBOX = "" as const;

/** The notices that the configuration asks for. Without a receiver a store gets no terms and writes none. */
export interface NoticeTerms {
  readonly kinds: ReadonlySet<NoticeKind>;
  /** For accounts without a threshold of their own. */
  readonly balanceBelow: NanoUsd | undefined;
}

/** What the gateway gives a store for its notices. */
export interface NoticeWriter {
  /** Undefined: no notices are written. */
  readonly terms: () => NoticeTerms | undefined;
  /** Called when a notice waits. It may not be committed yet, and the store must not be called from here. */
  readonly noted: (outbox: Outbox) => void;
}

/** A notice to be written. */
export interface NewNotice {
  readonly kind: NoticeKind;
  /**
   * The subject: a request, a payment, a key's revision. Together with account and kind it identifies the notice for
   * good.
   */
  readonly ref: string;
  /** Facts by name; amounts are nano-dollars and instants milliseconds, in digits. */
  readonly data: Readonly<Record<string, string>>;
}

/**
 * The mark under which a notice is sent only once. An account keeps one mark for each name, with the latest instance.
 * Whatever is not later was reported already, so a budget costs one mark and not one a day.
 */
export interface NoticeMark {
  /** The subject within the notice's kind: a card, or a scope and its span. */
  readonly name: string;
  /** The instance, a whole number above 0: the instant at which a span ends, or 1 for what happens once. */
  readonly latest: number;
}

export interface Notice extends NewNotice {
  /** Its position in the queue, from 1. */
  readonly seq: number;
  /** The store's time. */
  readonly atMs: number;
}

export interface WaitingNotices {
  /** The account's name; empty for the gateway's own queue. */
  readonly name: string;
  /** The last position that was removed. Notices between it and the first waiting one were dropped. */
  readonly taken: number;
  /** The last position that was assigned. */
  readonly last: number;
  /** Oldest first. */
  readonly notices: readonly Notice[];
}

/** An account with waiting notices. */
export interface WaitingAccount {
  readonly tag: AccountTag;
  readonly name: string;
  readonly waiting: number;
}

/** How many notices wait, without dropped ones. */
export function waitingCount({ taken, last }: Pick<WaitingNotices, "taken" | "last">): number {
  return Math.min(last - taken, NOTICES_MAX);
}

/** The terms as passed to scripts: the threshold or a dash, and the kinds; empty: no notices. */
export function termsText(terms: NoticeTerms | undefined): string {
  return terms === undefined ? "" : `${terms.balanceBelow ?? "-"} ${[...terms.kinds].join(" ")}`;
}

/** A notice as it is stored: a list of texts; each fact is its name and then its value. */
export function noticeTexts({ kind, ref, data }: NewNotice): string[] {
  return [kind, ref, ...Object.entries(data).flat()];
}

/** @param texts position, time, kind, ref, and facts. */
export function noticeOfTexts([seq, at, kind, ref = "", ...facts]: readonly string[]): Notice {
  const data: Record<string, string> = {};
  for (let i = 0; i + 1 < facts.length; i += 2) data[facts[i] as string] = facts[i + 1] as string;
  return { seq: Number(seq), atMs: Number(at), kind: kind as NoticeKind, ref, data };
}
