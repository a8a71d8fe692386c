/** The forms of what the admin API answers about ledgers: lines, archived lines, verifications. */
import { setImmediate } from "node:timers/promises";
import type { Store } from "../../store/contract.ts";
import type { LedgerLine } from "../../store/records.ts";
import type { AccountTag } from "../../values/key.ts";
import { type Static, Type } from "../vocabulary.ts";
import { anything, count, flag, instant, list, mapOf, object, oneOf, orNull, page, text, usd } from "./shape.ts";

const accountId = text("The account's id.", "acct_4tR0000abc");
const name = text("The account's name.", "alice");
const repeated = flag("Whether it was so before: the request was sent again and nothing was changed.");

const Attempt = object("Attempt", {
  upstream: text("The upstream's name.", "east"),
  model: text("The model's name there.", "big-1-2026-08"),
  outcome: text("What became of it.", "ok"),
  status: orNull(count("The upstream's HTTP status; null without one.", 200)),
  input_tokens: count("Input tokens.", 12),
  output_tokens: count("Output tokens.", 340),
  counted: text("Who counted: the upstream, or this gateway's estimate.", "upstream"),
  cost_usd: usd("What it costs the operator", "0.003412"),
  paid_by: text(
    "Who pays for it: `client`, `absorbed` (a line of the ledger, and no client) or `nobody` (it costs nothing).",
    "client",
  ),
  why: text(
    "Why they do: `answered`, or why the answer was cut; of a try that failed `sent`, `not_sent`, `refused` (by the upstream) or `unknown_route`.",
    "answered",
  ),
});

export type AttemptAnswer = Static<typeof Attempt>;

const LedgerLineShape = object("LedgerLine", {
  seq: count("The line's number, from 1.", 7),
  at: instant("When the store wrote it."),
  kind: oneOf(
    "What moved money; `unreadable`: what stands there is no line any more.",
    "usage",
    "absorbed",
    "topup",
    "adjust",
    "card",
    "opening",
    "unreadable",
  ),
  debit: text("The account of the double entry that gives.", "acct_4tR0000abc"),
  credit: text("The one that takes.", "revenue:big"),
  usd: usd("The amount", "0.003412"),
  balance_usd: usd("The account's balance behind the line", "9.996588"),
  reference: text("The id of the request, payment, adjustment or code.", "pay_1"),
  group: text("The group, where there is one.", "big"),
  model: text("The model, where there is one.", "big-1"),
  key: text("The key's id, where there is one.", "key_4tR0000abcXyZ01234"),
  usage: anything(
    "What a charge was computed from: token counts, unit prices, multiplier (docs/reconcile.md has its members); null for other lines.",
  ),
  attempts: list(Attempt),
  note: text("What the operator wrote.", "refund"),
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
  next: orNull(count("While it is still looked for: the `after` of the next question. Else null.", 100)),
});

export type RequestLinesAnswer = Static<typeof RequestLinesShape>;

export const PlainLines = object("PlainLines", {
  id: accountId,
  tag: text("The account's tag.", "4tR0000abc"),
  items: list(
    object("PlainLine", {
      seq: count("The line's number.", 7),
      at_ms: count("Milliseconds since the epoch.", 1_788_177_600_000),
      kind: text("What moved money.", "usage"),
      debit: text("The account that gives.", "acct_4tR0000abc"),
      credit: text("The account that takes.", "revenue:big"),
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
  stay_from_ms: count("Lines from this instant on are never archived.", 1_788_177_600_000),
});

export const ArchivedShape = object("Archived", {
  account: name,
  after: count("The line behind which it began.", 0),
  through: count("The last line that is archived.", 100),
  repeated,
});
export type ArchivedAnswer = Static<typeof ArchivedShape>;

const MarkShape = object("MarkFinding", {
  account: name,
  check: text("Which check found it; the runbook has them all.", "mark_without_line"),
  line: orNull(count("Always null: there is no line.", 7)),
  about: orNull(text("The id of the request.", "0198c5d2a1b27c3e8f00112233445566")),
  what: text(
    "What is wrong with it.",
    "The request 0198c5d2a1b27c3e8f00112233445566 counts as settled, but has no line.",
  ),
});
export type MarkAnswer = Static<typeof MarkShape>;

export const MarksPage = page("MarksPage", MarkShape, {
  steps: count("Steps so far in the part that is under way.", 120),
  restarted: flag("Whether a part had to be begun anew, because the gateway no longer knew how far it had come."),
});
export type MarksPageAnswer = Static<typeof MarksPage>;

const VerificationShape = object("Verification", {
  account: name,
  id: accountId,
  outcome: oneOf("Whether everything follows from the ledger.", "balanced", "unbalanced"),
  lines: count("Lines that were read.", 12),
  balance_usd: orNull(usd("The balance of the account; null where there is none")),
  lines_usd: usd("The sum of its lines, at the same instant"),
  held_usd: orNull(usd("What running requests have set aside", "0.00")),
  totals_usd: mapOf("The trial balance: the sum of each account of the double entry.", Type.String()),
  findings: list(
    object("Finding", {
      check: text("Which check found it; the runbook has them all.", "line_balance"),
      line: orNull(count("The line at fault.", 7)),
      about: orNull(text("The card, request, payment, key or sum that it is about.", "pay_1")),
      what: text("What is wrong with it.", "The balance after it is 9.00 USD; the lines give 10.00."),
    }),
  ),
  finding_count: count("Findings in all; the list may have fewer.", 0),
  skipped: list(text("What could not be compared.", "")),
});
export type VerificationAnswer = Static<typeof VerificationShape>;

export const VerificationPage = page("VerificationPage", VerificationShape, {
  progress: orNull(
    object("VerificationProgress", {
      account: name,
      lines: count("Number of the line that it has come to.", 4000),
      lines_total: orNull(count("Number of its last line when it began; null before that is known.", 200_000)),
    }),
  ),
  restarted: flag("Whether an account had to be begun anew, because the gateway no longer knew how far it had come."),
});
export type VerificationPageAnswer = Static<typeof VerificationPage>;

/* A page of ledger lines, read and shown a few at a time: other requests are served in between. */

/** Lines that are read and shown at a time: a few milliseconds of the process. */
const STEP_LINES = 100;
/** Characters of text in the lines of a page, about; a page of very long lines has fewer of them. */
const PAGE_CHARS = 524_288;

/**
 * @param limit lines at most.
 * @returns what `show` made of them, and the `after` of the next page, null on the last one.
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
 * The same from the newest line on.
 * @param before lines below this number.
 * @param sinceMs no line before this instant, on the store's clock.
 * @returns what `show` made of them, and the `before` of the next page, null on the last one.
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
    // The opening line stands for all below it: its number may be far above the one that was asked for.
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
