/**
 * What settlements have changed and is not in the tables yet. It is summed up in memory, so that an account, a card, a
 * budget and a sum of the day are written once for all settlements of a batch. Lines and marks are written one by one.
 */
import type { SQLInputValue } from "node:sqlite";
import type { AccountTag } from "../../../values/key.ts";
import type { BudgetCounts } from "../../limits/budgets.ts";
import type { LedgerLine } from "../../records.ts";
import { addTotals, type UsageTotal } from "../../sums/day-sums.ts";

/** The tables that rows are written to. */
interface Tables {
  run(sql: string, ...values: SQLInputValue[]): void;
}

/** What a settlement may change in the row of its account. */
interface AccountBalances {
  readonly balance: bigint;
  readonly spent: bigint;
  readonly seq: number;
}

/** The settled mark of a request, as in the table. */
export interface SettledMark {
  readonly amount: bigint;
  /** The request's hold as JSON; empty if it had none. */
  readonly record: string;
  /** The last millisecond of the mark's life. */
  readonly expires: number;
}

interface CardRow {
  readonly tag: AccountTag;
  readonly id: string;
  charged: bigint;
}

interface BudgetRow {
  readonly tag: AccountTag;
  readonly field: string;
  readonly counts: BudgetCounts;
}

interface DayRow {
  readonly tag: AccountTag;
  readonly day: string;
  readonly field: string;
  total: UsageTotal;
}

interface LineRow {
  readonly tag: AccountTag;
  readonly line: LedgerLine;
}

interface MarkRow {
  readonly tag: AccountTag;
  readonly requestId: string;
  readonly mark: SettledMark;
}

/** Keys are tag, day and name joined by spaces. Neither tag nor day contains a space, so keys are unambiguous. */
interface Rows {
  readonly accounts: Map<AccountTag, AccountBalances>;
  readonly cards: Map<string, CardRow>;
  readonly budgets: Map<string, BudgetRow>;
  readonly days: Map<string, DayRow>;
  readonly lines: LineRow[];
  readonly marks: MarkRow[];
  readonly others: (() => void)[];
}

const noRows = (): Rows => ({
  accounts: new Map(),
  cards: new Map(),
  budgets: new Map(),
  days: new Map(),
  lines: [],
  marks: [],
  others: [],
});

export class Batch {
  #rows = noRows();
  #isEmpty = true;

  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  setAccount(tag: AccountTag, figures: AccountBalances): void {
    this.#filled().accounts.set(tag, figures);
  }

  chargeCard(tag: AccountTag, id: string, charged: bigint): void {
    const { cards } = this.#filled();
    const known = cards.get(`${tag} ${id}`);
    if (known) known.charged += charged;
    else cards.set(`${tag} ${id}`, { tag, id, charged });
  }

  /** What is held of a budget is not in the tables. */
  setBudget(tag: AccountTag, field: string, counts: BudgetCounts): void {
    this.#filled().budgets.set(`${tag} ${field}`, { tag, field, counts });
  }

  /** A budget in the batch. */
  budget(tag: AccountTag, field: string): BudgetCounts | undefined {
    return this.#isEmpty ? undefined : this.#rows.budgets.get(`${tag} ${field}`)?.counts;
  }

  addToDay(tag: AccountTag, day: string, field: string, total: UsageTotal): void {
    const { days } = this.#filled();
    const name = `${tag} ${day} ${field}`;
    const known = days.get(name);
    if (known) known.total = addTotals(known.total, total);
    else days.set(name, { tag, day, field, total });
  }

  addLine(tag: AccountTag, line: LedgerLine): void {
    this.#filled().lines.push({ tag, line });
  }

  addMark(tag: AccountTag, requestId: string, mark: SettledMark): void {
    this.#filled().marks.push({ tag, requestId, mark });
  }

  /**
   * The mark of a request that was settled in the batch. There are some hundreds at most, and they are searched one by
   * one: usually there is no such request, and an index by name took 1 us for each settlement.
   */
  mark(tag: AccountTag, requestId: string): SettledMark | undefined {
    return this.#rows.marks.findLast((row) => row.requestId === requestId && row.tag === tag)?.mark;
  }

  /** A rare write. It is made after the rows, in the same transaction. */
  addWrite(write: () => void): void {
    this.#filled().others.push(write);
  }

  /** Writes everything within the running transaction. The batch is emptied first, so that writes may read. */
  writeTo(tables: Tables): void {
    const { accounts, cards, budgets, days, lines, marks, others } = this.#rows;
    this.clear();
    for (const [tag, { balance, spent, seq }] of accounts) {
      tables.run("UPDATE accounts SET bal = ?, spent = ?, seq = ? WHERE tag = ?", balance, spent, seq, tag);
    }
    for (const { tag, id, charged } of cards.values()) {
      tables.run("UPDATE entitlements SET spent = spent + ? WHERE tag = ? AND id = ?", charged, tag, id);
    }
    for (const { tag, field, counts } of budgets.values()) writeBudget(tables, tag, field, counts);
    for (const row of days.values()) writeDay(tables, row);
    for (const { tag, line } of lines) insertLine(tables, tag, line);
    for (const row of marks) writeMark(tables, row);
    for (const write of others) write();
  }

  clear(): void {
    this.#rows = noRows();
    this.#isEmpty = true;
  }

  #filled(): Rows {
    this.#isEmpty = false;
    return this.#rows;
  }
}

export function writeBudget(tables: Tables, tag: AccountTag, field: string, { now, before }: BudgetCounts): void {
  tables.run(
    "INSERT OR REPLACE INTO budgets (tag, field, period, spent, before_period, before_spent) VALUES (?, ?, ?, ?, ?, ?)",
    ...[tag, field, now.period, now.spent, before.period, before.spent],
  );
}

function writeDay(tables: Tables, { tag, day, field, total }: DayRow): void {
  const { amount, counts, cost, absorbed } = total;
  const { requests, input, cachedInput, cacheWrite, output, reasoning } = counts;
  tables.run(
    `INSERT INTO days (tag, day, field, amount, requests, input, cached_input, cache_write, output, reasoning, cost, absorbed)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET amount = amount + excluded.amount, requests = requests + excluded.requests,
       input = input + excluded.input, cached_input = cached_input + excluded.cached_input,
       cache_write = cache_write + excluded.cache_write, output = output + excluded.output,
       reasoning = reasoning + excluded.reasoning, cost = cost + excluded.cost, absorbed = absorbed + excluded.absorbed`,
    ...[tag, day, field, amount, requests, input, cachedInput, cacheWrite, output, reasoning, cost, absorbed],
  );
}

/** Inserts a line unchanged, within the running transaction. */
export function insertLine(tables: Tables, tag: AccountTag, line: LedgerLine): void {
  const { seq, atMs, kind, debit, credit, amount, balance, reference, group, model, key, memo } = line;
  tables.run(
    `INSERT INTO ledger (tag, seq, at, kind, debit, credit, amount, bal, ref, grp, model, key, memo)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[tag, seq, atMs, kind, debit, credit, amount, balance, reference, group, model, key, memo],
  );
}

function writeMark(tables: Tables, { tag, requestId, mark }: MarkRow): void {
  const { amount, record, expires } = mark;
  tables.run(
    "INSERT OR REPLACE INTO settled (tag, rid, amount, record, expires) VALUES (?, ?, ?, ?, ?)",
    ...[tag, requestId, amount, record, expires],
  );
}
