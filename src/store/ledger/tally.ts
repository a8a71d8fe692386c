/**
 * Sums up the lines of a ledger: the account's money, its cards, and what was charged by group and by field of the sums
 * per day. It judges nothing; `walk.ts` does.
 */

import type { AccountTag } from "../../values/key.ts";
import type { Memo } from "../../values/recompute.ts";
import type { CardSums, LedgerSums } from "../audit/snapshot.ts";
import { accountId, entitlementAccount } from "../names.ts";
import type { LedgerLine } from "../records.ts";
import { sumsOfLine } from "../sums/day-costs.ts";
import { addTotals, NO_USAGE_TOTAL, type UsageTotal } from "../sums/day-sums.ts";
import { NO_COUNTS } from "../sums/token-sums.ts";
import type { OpeningFacts } from "./opening.ts";

/** The most fields (group, model and key) that are summed separately; above it only groups are. */
export const FIELDS_MAX = 100_000;

export class LedgerTally {
  readonly #own: string;
  readonly #cards = new Map<string, CardSums>();
  readonly #totals = new Map<string, bigint>();
  readonly #charged = new Map<string, UsageTotal>();
  #fields: Map<string, UsageTotal> | undefined = new Map();
  #opening: OpeningFacts | undefined;
  #instants: { first: number; last: number } | undefined;
  #balance = 0n;
  #spent = 0n;
  #topped = 0n;
  #payments: number | undefined = 0;

  constructor(tag: AccountTag) {
    this.#own = accountId(tag);
  }

  get sums(): LedgerSums {
    return {
      balance: this.#balance,
      spent: this.#spent,
      topped: this.#topped,
      payments: this.#payments,
      cards: this.#cards,
    };
  }
  /** Credits less debits by kind of double-entry account; their sum is zero. */
  get totals(): ReadonlyMap<string, bigint> {
    return new Map([...this.#totals].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  /** What was charged since the opening line, by field of the sums per day; undefined above FIELDS_MAX fields. */
  get fields(): ReadonlyMap<string, UsageTotal> | undefined {
    return this.#fields;
  }
  /** The sums of the archived lines, by the opening line; undefined when the walk began with the very first line. */
  get opening(): OpeningFacts | undefined {
    return this.#opening;
  }
  /** The earliest and the latest instant of a line, including archived ones; undefined without lines. */
  get instants(): { readonly first: number; readonly last: number } | undefined {
    return this.#instants;
  }
  /** All that was added, for the opening line that will replace it. The chain is that of the present opening line. */
  get facts(): OpeningFacts {
    const counted = this.#opening === undefined || this.#opening.counts !== undefined;
    return {
      sinceMs: this.#instants?.first ?? 0,
      spent: this.#spent,
      topped: this.#topped,
      totals: this.totals,
      cards: this.#cards,
      charged: new Map([...this.#charged].map(([group, { amount }]) => [group, amount])),
      counts: counted ? new Map([...this.#charged].map(([group, { counts }]) => [group, counts])) : undefined,
      payments: this.#payments,
      chain: this.#opening?.chain,
    };
  }

  /** Starts over with an opening line instead of all that was added. */
  begin({ atMs, balance }: LedgerLine, facts: OpeningFacts): void {
    this.#opening = facts;
    this.#balance = balance;
    this.#spent = facts.spent;
    this.#topped = facts.topped;
    this.#payments = facts.payments;
    this.#instants = { first: facts.sinceMs, last: Math.max(facts.sinceMs, atMs) };
    this.#fields = new Map();
    replace(this.#totals, facts.totals);
    const charged = [...facts.charged].map(
      ([group, amount]) =>
        [group, { ...NO_USAGE_TOTAL, amount, counts: facts.counts?.get(group) ?? NO_COUNTS }] as const,
    );
    replace(this.#charged, new Map(charged));
    replace(this.#cards, facts.cards);
  }

  /** @param memo what a charge or an absorbed cost was computed from. */
  add(line: LedgerLine, memo: Memo | undefined): void {
    const { debit, credit, amount, kind, atMs } = line;
    const { first, last } = this.#instants ?? { first: atMs, last: atMs };
    this.#instants = { first: Math.min(first, atMs), last: Math.max(last, atMs) };
    this.#total(debit, -amount);
    this.#total(credit, amount);
    const moved = this.moved(line);
    this.#balance += moved;
    this.#count(line, memo);
    if (kind === "usage" && debit === this.#own) this.#spent += amount;
    if (kind === "topup" || kind === "adjust") {
      this.#topped += moved;
      if (this.#payments !== undefined) this.#payments += 1;
    }
    if (kind === "card") this.#cards.set(credit, { quota: amount, spent: this.#cards.get(credit)?.spent ?? 0n });
    const card = this.#cards.get(debit);
    if (card) this.#cards.set(debit, { ...card, spent: card.spent + amount });
  }

  /** By how much a line changes the balance. */
  moved({ debit, credit, amount }: LedgerLine): bigint {
    return (credit === this.#own ? amount : 0n) - (debit === this.#own ? amount : 0n);
  }

  /** The kind of a double-entry account; `own` is the account or one of its cards. */
  kindOf(account: string): string {
    if (account === this.#own || account.startsWith(entitlementAccount(""))) return "own";
    return account.split(":", 1)[0] as string;
  }

  #count(line: LedgerLine, memo: Memo | undefined): void {
    const sums = sumsOfLine(line, memo);
    const [own] = sums;
    if (own && line.kind === "usage") {
      const { group } = line;
      this.#charged.set(group, addTotals(this.#charged.get(group) ?? NO_USAGE_TOTAL, own[1]));
    }
    for (const [field, sum] of sums) {
      this.#fields?.set(field, addTotals(this.#fields.get(field) ?? NO_USAGE_TOTAL, sum));
      if (this.#fields && this.#fields.size > FIELDS_MAX) this.#fields = undefined;
    }
  }

  #total(account: string, amount: bigint): void {
    const kind = this.kindOf(account);
    const name = kind === "own" ? (account === this.#own ? "account" : "entitlements") : kind;
    this.#totals.set(name, (this.#totals.get(name) ?? 0n) + amount);
  }
}

function replace<T>(map: Map<string, T>, other: ReadonlyMap<string, T>): void {
  map.clear();
  for (const [name, value] of other) map.set(name, value);
}
