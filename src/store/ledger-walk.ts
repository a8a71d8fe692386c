/**
 * An account's ledger read line by line, in order: what the lines sum up to, and where they contradict themselves or the
 * figures that they were computed from. Knows no store; `ledger-audit.ts` feeds it.
 */

import type { AccountTag } from "../values/key.ts";
import { formatUsd, type NanoUsd } from "../values/money.ts";
import { recompute } from "../values/recompute.ts";
import { accountId, entitlementAccount } from "./names.ts";
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
};

const OVER_HOLD = "absorbed:over_hold";

export class LedgerWalk {
  readonly #own: string;
  readonly #findings: Finding[] = [];
  readonly #cards = new Map<string, { quota: bigint; spent: bigint }>();
  readonly #totals = new Map<string, bigint>();
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
  /** What the lines say that a card has given. */
  spentOf(entitlement: string): bigint {
    return this.#cards.get(entitlementAccount(entitlement))?.spent ?? 0n;
  }

  /** Takes the next line. */
  add(line: LedgerLine): void {
    this.#inOrder(line);
    const completes = this.#usage !== undefined && line.debit === OVER_HOLD && line.reference === this.#usage.reference;
    if (completes) this.#judgeUsage(line.amount);
    else this.#judgeUsage(0n);
    this.#move(line);
    this.#judgeSides(line);
    if (line.kind === "usage") this.#usage = line;
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

  #inOrder({ seq }: LedgerLine): void {
    if (seq !== this.#seq + 1) {
      const missing = seq > this.#seq + 1 ? `line ${this.#seq + 1} is missing before it` : "its number does not go up";
      this.find(`The lines are not numbered without gaps: ${missing}.`, seq);
    }
    this.#seq = Math.max(seq, this.#seq);
  }

  #move(line: LedgerLine): void {
    const { debit, credit, amount, kind } = line;
    this.#total(debit, -amount);
    this.#total(credit, amount);
    const moved = (credit === this.#own ? amount : 0n) - (debit === this.#own ? amount : 0n);
    this.#balance += moved;
    if (kind === "usage" && debit === this.#own) this.#spent += amount;
    if (kind === "topup" || kind === "adjust") this.#topped += moved;
    if (kind === "card") this.#cards.set(credit, { quota: amount, spent: this.#cards.get(credit)?.spent ?? 0n });
    const card = this.#cards.get(debit);
    if (card) card.spent += amount;
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
    // A card without a quota pays whatever it is, and its lines are of 0.
    const unmetered = this.#cards.get(line.debit)?.quota === 0n;
    if (figures) this.#compare(line, line.amount + absorbed, unmetered ? 0n : figures.owed);
  }

  #judgeAbsorbed(line: LedgerLine): void {
    const figures = this.#figuresOf(line);
    if (figures) this.#compare(line, line.amount, figures.cost);
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
