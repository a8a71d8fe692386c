/**
 * An account's ledger read line by line, in order: what the lines sum up to, and where they contradict themselves or the
 * figures that they were computed from. Knows no store; `ledger-audit.ts` feeds it.
 */

import type { AccountTag } from "../values/key.ts";
import { formatUsd, type NanoUsd } from "../values/money.ts";
import { attemptsOf, recompute } from "../values/recompute.ts";
import { accountId, entitlementAccount } from "./names.ts";
import { type OpeningFacts, readOpening } from "./opening.ts";
import type { LedgerLine } from "./records.ts";

/** Something that is not as it must be. */
export interface Finding {
  /** The line's number; undefined for what concerns the account as a whole. */
  readonly line: number | undefined;
  /** One sentence, ends with a full stop. */
  readonly what: string;
}

/** Findings that are kept of one account; further ones are only counted. */
export const FINDINGS_MAX = 20;

/** Which double-entry accounts each kind of line may move money between; `own` is the account or one of its cards. */
const SIDES: Readonly<Record<LedgerLine["kind"], readonly (readonly [debit: string, credit: string])[]>> = {
  usage: [["own", "revenue"]],
  absorbed: [
    ["absorbed", "revenue"],
    ["absorbed", "upstream"],
  ],
  topup: [
    ["topup", "own"],
    ["own", "topup"],
  ],
  adjust: [
    ["adjust", "own"],
    ["own", "adjust"],
  ],
  card: [["cards", "own"]],
  opening: [["opening", "own"]],
};

const OVER_HOLD = "absorbed:over_hold";

export class LedgerWalk {
  readonly #own: string;
  readonly #findings: Finding[] = [];
  readonly #cards = new Map<string, { readonly quota: bigint; readonly spent: bigint }>();
  readonly #totals = new Map<string, bigint>();
  readonly #charged = new Map<string, bigint>();
  #instants: { first: number; last: number } | undefined;
  #findingCount = 0;
  #lines = 0;
  #seq = 0;
  #told = 0n;
  #balance = 0n;
  #spent = 0n;
  #topped = 0n;
  /** A usage line that the next line may complete with what was absorbed above the hold. */
  #usage: LedgerLine | undefined;

  constructor(tag: AccountTag) {
    this.#own = accountId(tag);
  }

  /** Number of the last line seen. */
  get seq(): number {
    return this.#seq;
  }
  get lines(): number {
    return this.#lines;
  }
  /** What the lines leave in the account, took from it for use, and brought to it by hand. */
  get sums(): { readonly balance: bigint; readonly spent: bigint; readonly topped: bigint } {
    return { balance: this.#balance, spent: this.#spent, topped: this.#topped };
  }
  get findings(): readonly Finding[] {
    return this.#findings;
  }
  get findingCount(): number {
    return this.#findingCount;
  }
  /** Credits less debits by kind of double-entry account; their sum is zero. */
  get totals(): ReadonlyMap<string, bigint> {
    return new Map([...this.#totals].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
  /** What was charged, by group: to balances and to cards. */
  get charged(): ReadonlyMap<string, bigint> {
    return this.#charged;
  }
  /** The earliest and the latest instant of a line, archived ones included; undefined without lines. */
  get instants(): { readonly first: number; readonly last: number } | undefined {
    return this.#instants;
  }
  /** Ids of the cards that the account was given. */
  get cards(): readonly string[] {
    return [...this.#cards.keys()].map((account) => account.slice(entitlementAccount("").length));
  }
  /** All that has been walked, for the opening line that is to stand for it. */
  get facts(): OpeningFacts {
    return {
      sinceMs: this.#instants?.first ?? 0,
      spent: this.#spent,
      topped: this.#topped,
      totals: this.totals,
      cards: this.#cards,
      charged: this.#charged,
    };
  }
  /** What the lines say that a card has given. */
  spentOf(entitlement: string): bigint {
    return this.#cards.get(entitlementAccount(entitlement))?.spent ?? 0n;
  }

  /** Takes the next line. */
  add(line: LedgerLine): void {
    if (line.kind === "opening") this.#open(line);
    else this.#walk(line);
  }

  #walk(line: LedgerLine): void {
    this.#inOrder(line);
    const completes = this.#usage !== undefined && line.debit === OVER_HOLD && line.reference === this.#usage.reference;
    if (completes) this.#judgeUsage(line.amount);
    else this.#judgeUsage(0n);
    this.#move(line);
    this.#judgeSides(line);
    if (line.kind === "usage") this.#usage = line;
    if ((line.kind === "usage" || line.kind === "absorbed") && !completes) this.#judgeAttempts(line);
    if (line.kind === "absorbed" && !completes) this.#judgeAbsorbed(line);
    this.#judgeBalance(line);
    this.#lines += 1;
  }

  /** There is no further line for now; what the last one left open is judged. */
  end(): void {
    this.#judgeUsage(0n);
  }

  /** Notes something that is wrong. */
  find(what: string, line?: number): void {
    this.#findingCount += 1;
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push({ line, what });
  }

  /**
   * An opening line stands for everything before it. Who has walked just that (from the archive) compares; for anybody
   * else, one who was overtaken by the archive included, the walk begins with it.
   */
  #open(line: LedgerLine): void {
    const facts = readOpening(line.memo);
    if (!facts) {
      this.find("Its memo does not say what was archived.", line.seq);
      return;
    }
    this.end();
    if (this.#seq === line.seq) this.#compareOpening(line, facts);
    else this.#begin(line, facts);
    const sum = [...facts.totals.values()].reduce((total, amount) => total + amount, 0n);
    if (sum !== 0n) this.find(`What was archived sums up to ${formatUsd(sum)} USD in place of zero.`, line.seq);
  }

  #compareOpening(line: LedgerLine, facts: OpeningFacts): void {
    const walked = JSON.stringify(openingShape(this.facts));
    if (this.#balance === line.balance && walked === JSON.stringify(openingShape(facts))) return;
    const words = `${formatUsd(line.balance)} USD, the archived lines give ${formatUsd(this.#balance)}`;
    this.find(`The opening line does not follow from the archive: its balance is ${words}.`, line.seq);
  }

  #begin(line: LedgerLine, facts: OpeningFacts): void {
    this.#seq = line.seq;
    this.#balance = line.balance;
    this.#told = line.balance;
    this.#spent = facts.spent;
    this.#topped = facts.topped;
    this.#instants = { first: facts.sinceMs, last: Math.max(facts.sinceMs, line.atMs) };
    replace(this.#totals, facts.totals);
    replace(this.#charged, facts.charged);
    replace(this.#cards, facts.cards);
  }

  #inOrder({ seq }: LedgerLine): void {
    if (seq !== this.#seq + 1) {
      const missing = seq > this.#seq + 1 ? `line ${this.#seq + 1} is missing before it` : "its number does not go up";
      this.find(`The lines are not numbered without gaps: ${missing}.`, seq);
    }
    this.#seq = Math.max(seq, this.#seq);
  }

  #move(line: LedgerLine): void {
    const { debit, credit, amount, kind, atMs } = line;
    const { first, last } = this.#instants ?? { first: atMs, last: atMs };
    this.#instants = { first: Math.min(first, atMs), last: Math.max(last, atMs) };
    if (kind === "usage") this.#charged.set(line.group, (this.#charged.get(line.group) ?? 0n) + amount);
    this.#total(debit, -amount);
    this.#total(credit, amount);
    const moved = (credit === this.#own ? amount : 0n) - (debit === this.#own ? amount : 0n);
    this.#balance += moved;
    if (kind === "usage" && debit === this.#own) this.#spent += amount;
    if (kind === "topup" || kind === "adjust") this.#topped += moved;
    if (kind === "card") this.#cards.set(credit, { quota: amount, spent: this.#cards.get(credit)?.spent ?? 0n });
    const card = this.#cards.get(debit);
    if (card) this.#cards.set(debit, { ...card, spent: card.spent + amount });
  }

  #total(account: string, amount: bigint): void {
    const kind = this.#kindOf(account);
    const name = kind === "own" ? (account === this.#own ? "account" : "entitlements") : kind;
    this.#totals.set(name, (this.#totals.get(name) ?? 0n) + amount);
  }

  #kindOf(account: string): string {
    if (account === this.#own || account.startsWith(entitlementAccount(""))) return "own";
    return account.split(":", 1)[0] as string;
  }

  #judgeSides({ seq, kind, debit, credit, amount }: LedgerLine): void {
    if (amount < 0n) this.find(`Its amount is negative: ${formatUsd(amount)} USD.`, seq);
    const [from, to] = [this.#kindOf(debit), this.#kindOf(credit)];
    if (SIDES[kind]?.some(([a, b]) => a === from && b === to)) return;
    this.find(`A line of the kind ${kind} does not move money from ${debit} to ${credit}.`, seq);
  }

  /** A line must fit the one before it or the sum of all; one wrong line is named once, not with all that follow it. */
  #judgeBalance({ seq, balance, debit, credit, amount }: LedgerLine): void {
    const moved = (credit === this.#own ? amount : 0n) - (debit === this.#own ? amount : 0n);
    if (balance !== this.#balance && balance !== this.#told + moved) {
      this.find(`The balance after it is ${formatUsd(balance)} USD; the lines give ${formatUsd(this.#balance)}.`, seq);
    }
    this.#told = balance;
  }

  /** What was charged, and what was absorbed because neither hold nor funds covered it, are the whole price. */
  #judgeUsage(absorbed: bigint): void {
    const line = this.#usage;
    if (!line) return;
    this.#usage = undefined;
    const figures = this.#figuresOf(line);
    // A card without a quota pays whatever it is, and its lines are of 0. Its own line may be behind theirs: a store that
    // lost both can get the charge back first.
    const quota = this.#cards.get(line.debit)?.quota;
    const isNothing = line.amount + absorbed === 0n;
    const unmetered = quota === 0n || (quota === undefined && isNothing && line.debit.startsWith("ent_"));
    if (figures) this.#compare(line, line.amount + absorbed, unmetered ? 0n : figures.owed);
  }

  #judgeAbsorbed(line: LedgerLine): void {
    const figures = this.#figuresOf(line);
    if (figures) this.#compare(line, line.amount, figures.cost);
  }

  /** What the answered try cost the operator follows from the line, too. */
  #judgeAttempts({ seq, memo }: LedgerLine): void {
    const attempts = attemptsOf(memo);
    if (!attempts) this.find("Its memo does not hold the figures of its attempts.", seq);
    for (const { upstream, cost, computed = cost } of attempts ?? []) {
      if (cost === computed) continue;
      this.find(`The attempt at ${upstream} cost ${formatUsd(cost)} USD, its tokens give ${formatUsd(computed)}.`, seq);
    }
  }

  #figuresOf(line: LedgerLine): { cost: NanoUsd; owed: NanoUsd } | undefined {
    const figures = recompute(line.memo);
    if (!figures) this.find("Its memo does not hold the figures that it was computed from.", line.seq);
    return figures;
  }

  #compare({ seq, reference }: LedgerLine, amount: bigint, computed: bigint): void {
    if (amount === computed) return;
    const words = `${formatUsd(amount)} USD, its tokens at its prices give ${formatUsd(computed)}`;
    this.find(`The charge of ${reference} is ${words}.`, seq);
  }
}

function replace<T>(map: Map<string, T>, other: ReadonlyMap<string, T>): void {
  map.clear();
  for (const [name, value] of other) map.set(name, value);
}

/** In an order that does not depend on who wrote it. */
function openingShape({ spent, topped, totals, cards, charged }: OpeningFacts): unknown {
  const sorted = (amounts: ReadonlyMap<string, bigint>) => [...amounts].map(([name, one]) => `${name} ${one}`).sort();
  const worth = [...cards].map(([id, { quota, spent: paid }]) => `${id} ${quota} ${paid}`).sort();
  return [`${spent}`, `${topped}`, sorted(totals), worth, sorted(charged)];
}
