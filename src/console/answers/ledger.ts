/** The forms of the admin API's answers about ledgers: lines, archived lines, verifications. */
import { setImmediate } from "node:timers/promises";
import type { Store } from "../../store/contract.ts";
import type { LedgerLine } from "../../store/records.ts";
import type { AccountTag } from "../../values/key.ts";
import { type Static, Type } from "../vocabulary.ts";
import { anything, count, flag, instant, list, mapOf, object, oneOf, orNull, page, text, usd } from "./shape.ts";

const accountId = text("The account's id.", "acct_4tR0000abc");
const name = text("The account's name.", "alice");
const repeated = flag("Whether an earlier request had already done it, so that this one changed nothing.");

const Attempt = object("Attempt", {
  upstream: text("The upstream's name.", "east"),
  model: text("The model's name at the upstream.", "big-1-2026-08"),
  outcome: text("How the attempt ended.", "ok"),
  status: orNull(count("The upstream's HTTP status; null without one.", 200)),
  input_tokens: count("Input tokens.", 12),
  output_tokens: count("Output tokens.", 340),
  counted: text("Who counted the tokens: `upstream`, or `estimate` by this gateway.", "upstream"),
  cost_usd: usd("What it costs the operator", "0.003412"),
  paid_by: text(
    "Who pays for it: `client`, `absorbed` (a line of the ledger, but no client) or `nobody` (it costs nothing).",
    "client",
  ),
  why: text(
    "The reason: `answered`, or why the answer was cut; for a failed attempt `sent`, `not_sent`, `refused` (by the upstream) or `unknown_route`.",
    "answered",
  ),
});

export type AttemptAnswer = Static<typeof Attempt>;

const LedgerLineShape = object("LedgerLine", {
  seq: count("The line's number, from 1.", 7),
  at: instant("When the store wrote it."),
  kind: oneOf(
    "The kind of movement; `unreadable`: the stored record cannot be read as a line.",
    "usage",
    "absorbed",
    "topup",
    "adjust",
    "card",
    "opening",
    "unreadable",
  ),
  debit: text("The account of the double entry that is debited.", "acct_4tR0000abc"),
  credit: text("The account that is credited.", "revenue:big"),
  usd: usd("The amount", "0.003412"),
  balance_usd: usd("The account's balance after the line", "9.996588"),
  reference: text("The id of the request, payment, adjustment or code.", "pay_1"),
  group: text("The group, if there is one.", "big"),
  model: text("The model, if there is one.", "big-1"),
  key: text("The key's id, if there is one.", "key_4tR0000abcXyZ01234"),
  usage: anything(
    "What a charge was computed from: token counts, unit prices, multiplier (docs/reconcile.md lists the members); null for other lines.",
  ),
  attempts: list(Attempt),
  note: text("The operator's note.", "refund"),
});
export type LedgerLineAnswer = Static<typeof LedgerLineShape>;

export const LedgerPage = object("LedgerPage", {
  account_id: accountId,
  items: list(LedgerLineShape),
  next: orNull(count("The `after` of the next page; null on the last one.", 100)),
});

export const RequestLinesShape = object("RequestLines", {
  account_id: accountId,
  request: text("The id of the request.", "req_02bLkEx4ndGkJZPZqR7vXsDW"),
  items: list(LedgerLineShape),
  next: orNull(count("While the search is not finished: the `after` of the next request. Otherwise null.", 100)),
});

export type RequestLinesAnswer = Static<typeof RequestLinesShape>;

export const PlainLines = object("PlainLines", {
  id: accountId,
  tag: text("The account's tag.", "4tR0000abc"),
  items: list(
    object("PlainLine", {
      seq: count("The line's number.", 7),
      at_ms: count("Milliseconds since the epoch.", 1_788_177_600_000),
      kind: text("The kind of movement.", "usage"),
      debit: text("The account that is debited.", "acct_4tR0000abc"),
      credit: text("The account that is credited.", "revenue:big"),
      amount: text("Nano-dollars, as an integer.", "3412000"),
      balance: text("Nano-dollars, as an integer.", "9996588000"),
      reference: text("The id of the request, payment, adjustment or code.", "pay_1"),
      group: text("The group.", "big"),
      model: text("The model.", "big-1"),
      key: text("The key's id.", "key_4tR0000abcXyZ01234"),
      memo: text("What a charge was computed from, or a note.", ""),
    }),
  ),
  next: orNull(count("The `after` of the next page; null on the last one.", 100)),
  stay_from_ms: count("Lines from this instant on cannot be archived yet.", 1_788_177_600_000),
});

export const ArchivedShape = object("Archived", {
  account: name,
  after: count("The line before the first archived one.", 0),
  through: count("The last archived line.", 100),
  repeated,
});
export type ArchivedAnswer = Static<typeof ArchivedShape>;

const MarkShape = object("MarkFinding", {
  account: name,
  check: text("The check that found it; the runbook explains all checks.", "mark_without_line"),
  line: orNull(count("Always null: there is no line.", 7)),
  about: orNull(text("The id of the request.", "0198c5d2a1b27c3e8f00112233445566")),
  what: text(
    "What is wrong with it.",
    "The request 0198c5d2a1b27c3e8f00112233445566 counts as settled, but has no line.",
  ),
});
export type MarkAnswer = Static<typeof MarkShape>;

export const MarksPage = page("MarksPage", MarkShape, {
  steps: count("Steps so far in the current part.", 120),
  restarted: flag("Whether the current part was started again, because the gateway no longer had its progress."),
});
export type MarksPageAnswer = Static<typeof MarksPage>;

const VerificationShape = object("Verification", {
  account: name,
  id: accountId,
  outcome: oneOf("Whether all figures of the account match its ledger.", "balanced", "unbalanced"),
  lines: count("Lines that were read.", 12),
  balance_usd: orNull(usd("The balance of the account; null if there is no account")),
  lines_usd: usd("The sum of its lines, at the same instant"),
  held_usd: orNull(usd("What running requests hold", "0.00")),
  totals_usd: mapOf("The trial balance: the sum of each account of the double entry.", Type.String()),
  findings: list(
    object("Finding", {
      check: text("The check that found it; the runbook explains all checks.", "line_balance"),
      line: orNull(count("The line at fault.", 7)),
      about: orNull(text("The card, request, payment, key or sum that it concerns.", "pay_1")),
      what: text("What is wrong with it.", "The balance after it is 9.00 USD; the lines give 10.00."),
    }),
  ),
  finding_count: count("Total number of findings; the list may be shorter.", 0),
  skipped: list(text("A comparison that could not be made.", "")),
});
export type VerificationAnswer = Static<typeof VerificationShape>;

export const VerificationPage = page("VerificationPage", VerificationShape, {
  progress: orNull(
    object("VerificationProgress", {
      account: name,
      lines: count("The number of the line that it has reached.", 4000),
      lines_total: orNull(count("The number of the last line when it started; null until that is known.", 200_000)),
    }),
  ),
  restarted: flag(
    "Whether the verification of an account was started again, because the gateway no longer had its progress.",
  ),
});
export type VerificationPageAnswer = Static<typeof VerificationPage>;

/*
 * A page of ledger lines. Lines are read and converted a few at a time, so that other requests are served in between.
 */

/** Lines that are read and converted at a time: a few milliseconds of the process. */
const STEP_LINES = 100;
/** Approximate maximum of text characters in the lines of a page; a page of very long lines is shorter. */
const PAGE_CHARS = 524_288;

/**
 * Reads a page of lines, oldest first.
 * @param limit maximum number of lines
 * @returns the results of `show`, and the `after` of the next page, null on the last one
 * @throws StoreError
 */
export async function linePage<T>(
  store: Pick<Store, "readLedger">,
  tag: AccountTag,
  { after, limit }: { readonly after: number; readonly limit: number },
  show: (line: LedgerLine) => T,
): Promise<{ readonly items: T[]; readonly next: number | null }> {
  const items: T[] = [];
  let last = after;
  let chars = 0;
  while (items.length < limit && chars < PAGE_CHARS) {
    const count = Math.min(STEP_LINES, limit - items.length);
    const lines = await store.readLedger(tag, last, count);
    for (const line of lines) {
      items.push(show(line));
      chars += charsOf(line);
    }
    last = lines.at(-1)?.seq ?? last;
    if (lines.length < count) return { items, next: null };
    await setImmediate();
  }
  return { items, next: last };
}

/**
 * Reads a page of lines, newest first.
 * @param before only lines below this number
 * @param sinceMs only lines from this instant on, on the store's clock
 * @returns the results of `show`, and the `before` of the next page, null on the last one
 * @throws StoreError
 */
export async function newestLines<T>(
  store: Pick<Store, "readLedger">,
  tag: AccountTag,
  { before, limit, sinceMs }: { readonly before: number; readonly limit: number; readonly sinceMs: number },
  show: (line: LedgerLine) => T,
): Promise<{ readonly items: T[]; readonly next: number | null }> {
  const items: T[] = [];
  let top = before;
  let chars = 0;
  while (items.length < limit && chars < PAGE_CHARS) {
    const count = Math.min(STEP_LINES, limit - items.length, top - 1);
    // The opening line replaces all archived lines before it, so its number may be far above the requested one.
    const lines = (await store.readLedger(tag, top - 1 - count, count)).filter(({ seq }) => seq < top);
    for (const line of lines.reverse()) {
      if (line.atMs < sinceMs) return { items, next: null };
      items.push(show(line));
      chars += charsOf(line);
    }
    const oldest = lines.at(-1);
    if (oldest === undefined || oldest.seq === 1 || oldest.kind === "opening") return { items, next: null };
    top = oldest.seq;
    await setImmediate();
  }
  return { items, next: top };
}

const charsOf = ({ memo, debit, credit, reference }: LedgerLine): number =>
  memo.length + debit.length + credit.length + reference.length;
