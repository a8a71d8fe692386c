/**
 * The audit of an account: every figure in the store is compared with the ledger lines from which it must follow.
 *
 * The audit runs in steps. Each asks the store for a bounded portion, and its caller may do something else between two
 * steps. Accounts change meanwhile, so each portion is read at one instant, together with the number of that instant's
 * last line. The walk continues to that line; then both sides are of the same instant. A large account takes longer,
 * but blocks no request.
 */

import type { AccountTag } from "../../values/key.ts";
import { errorText } from "../../values/program/error-text.ts";
import { judgeDays, portions } from "../audit/day-portions.ts";
import {
  AccountReader,
  type AuditProgress,
  type AuditStore,
  type ProgressSteps,
  STORE_OLDER,
} from "../audit/reader.ts";
import type { Finding } from "../audit/snapshot.ts";
import { StoreError } from "../contract.ts";
import { FIGURES_MAX } from "../figures.ts";
import type { Account, AccountName } from "../records.ts";
import type { LedgerTally } from "./tally.ts";

export { auditMarks, type MarkFinding, type MarkProgress, type MarkSteps } from "../audit/marks.ts";
export type { AuditProgress, AuditStore };

export interface AccountAudit {
  readonly name: string;
  readonly tag: AccountTag;
  /** As it was when the audit began; undefined when the name leads to no account. */
  readonly account: Account | undefined;
  readonly lines: number;
  /** The balance that the lines up to that instant give. */
  readonly balance: bigint;
  readonly totals: LedgerTally["totals"];
  readonly outcome: "balanced" | "unbalanced";
  readonly findings: readonly Finding[];
  /** The number of all findings, including those that are not kept. */
  readonly findingCount: number;
  /** Sentences on what could not be compared; empty except for extremely large accounts. */
  readonly skipped: readonly string[];
}

/** Steps of an audit, and its outcome. */
export type AuditSteps = ProgressSteps<AccountAudit>;

/** How often a store may go back while an account is audited. */
const RESTARTS_MAX = 3;

/**
 * Audits one account: each line, and the account's figures against its lines, with every check of `audit/checks.ts`.
 * @throws StoreError when the store keeps going back. If the store does not answer, the step reports it.
 */
export async function* auditAccount(store: AuditStore, account: AccountName): AuditSteps {
  for (let restarts = 0; ; restarts++) {
    try {
      return yield* auditOnce(store, account);
    } catch (error) {
      if (error !== STORE_OLDER) throw error;
      if (restarts === RESTARTS_MAX) throw new StoreError("unavailable", "the store lost lines while it was read");
    }
  }
}

async function* auditOnce(store: AuditStore, { name, tag }: AccountName): AuditSteps {
  const reader = new AccountReader(store, tag);
  const { walk } = reader;
  let account: Account | undefined;
  let balance = 0n;
  let skipped: readonly string[] = [];
  try {
    const first = yield* reader.ask(() => store.readFigures(tag, {}));
    account = first?.account;
    if (first) {
      reader.linesMax = first.lastLine;
      // It may have been renamed after its name was read.
      const isNamed = first.account.name === name;
      const found = isNamed ? { tag } : yield* reader.ask(() => store.findAccountName(name));
      yield* reader.judge(first, { foundAs: found?.tag === tag ? name : undefined });
      ({ balance } = walk.tally.sums);
      yield* judgeCardsAndHolds(reader, yield* judgeKeys(reader));
      skipped = yield* judgeDays(reader);
      yield* reader.judge(yield* reader.figures({ paymentCount: true }));
    } else {
      walk.find("account_missing", `The name ${name} leads to an account that does not exist.`);
    }
  } catch (error) {
    // A store that is unavailable or was restored from an older copy is no fault of the account; any other error comes
    // from its contents.
    if (error === STORE_OLDER || error instanceof StoreError) throw error;
    reader.find({
      check: "unreadable",
      line: undefined,
      what: `The account cannot be read completely: ${errorText(error)}.`,
    });
  }
  const { lines, findings, findingCount, tally } = walk;
  const outcome = findingCount === 0 ? "balanced" : "unbalanced";
  return { name, tag, account, lines, balance, totals: tally.totals, outcome, findings, findingCount, skipped };
}

/** Judges the keys, a page at a time. @returns names of cards and of scopes. */
async function* judgeKeys(
  reader: AccountReader,
): ProgressSteps<{ readonly cards: Set<string>; readonly scopes: Set<string> }> {
  const [cards, scopes] = [new Set<string>(), new Set<string>()];
  let cursor: string | undefined;
  do {
    const from = cursor;
    const page = yield* reader.ask(() => reader.store.listRecords(reader.tag, from));
    for (const id of page.cards) cards.add(id);
    for (const scope of page.scopes) scopes.add(scope);
    for (const keys of portions(page.keys, FIGURES_MAX)) yield* reader.judge(yield* reader.figures({ keys }));
    cursor = page.next;
  } while (cursor !== undefined);
  return { cards, scopes };
}

async function* judgeCardsAndHolds(
  reader: AccountReader,
  { cards, scopes }: { cards: Set<string>; scopes: Set<string> },
): ProgressSteps<void> {
  const { holds = [] } = yield* reader.figures({ holds: true });
  for (const { scope } of holds) scopes.add(scope);
  for (const id of reader.walk.cards) cards.add(id);
  const parts = [
    portions([...cards], FIGURES_MAX),
    portions([...scopes], FIGURES_MAX),
    portions(
      holds.map(({ requestId }) => requestId),
      FIGURES_MAX,
    ),
  ];
  const most = Math.max(1, ...parts.map(({ length }) => length));
  for (let at = 0; at < most; at++) {
    const [ids = [], names = [], requests = []] = parts.map((part) => part[at]);
    const codes: [string, { tag: string | undefined; state: string } | undefined][] = [];
    for (const id of ids) codes.push([id, yield* reader.ask(() => reader.store.getCode(id))]);
    const figures = yield* reader.figures({ cards: ids, scopes: names, requests, holds: true });
    yield* reader.judge(figures, { codes: new Map(codes) });
  }
}
