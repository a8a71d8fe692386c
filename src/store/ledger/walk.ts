/**
 * Reads an account's ledger line by line, in order, and finds lines that contradict each other or the figures from
 * which they were computed. It uses no store; `audit.ts` feeds it.
 */

import type { AccountTag } from "../../values/key.ts";
import { formatUsd, type NanoUsd } from "../../values/money.ts";
import { attemptsOf, type Memo, readMemo, recompute } from "../../values/recompute.ts";
import type { Finding, LedgerPayment, LedgerRequest } from "../audit/snapshot.ts";
import { entitlementAccount } from "../names.ts";
import type { LedgerLine } from "../records.ts";
import { CUT_OVER_HOLD } from "../settlement.ts";
import { type OpeningFacts, readOpening } from "./opening.ts";
import { LedgerTally } from "./tally.ts";

/** Findings that are kept for one account; further ones are only counted. */
const FINDINGS_MAX = 20;
/** The number of later requests among which a second charge of the same request is noticed; at most twice as many. */
const RECENT_REQUESTS_MIN = 20_000;
/**
 * The double-entry accounts between which each kind of line may move money; `own` is the account or one of its cards.
 */
const SIDES: Readonly<Partial<Record<LedgerLine["kind"], readonly (readonly [debit: string, credit: string])[]>>> = {
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
  card: [
    ["cards", "own"],
    ["gifts", "own"],
  ],
  opening: [["opening", "own"]],
};

const OVER_HOLD = "absorbed:over_hold";
/** The same for an answer that broke off: its client never owed it. */
const CUT = `absorbed:${CUT_OVER_HOLD}`;

/** The lines of one request so far: they are consecutive. */
interface OpenRequest {
  readonly first: LedgerLine;
  readonly usage: { readonly line: LedgerLine; readonly memo: Memo } | undefined;
  overHold: bigint;
  cutOverHold: bigint;
}

export class LedgerWalk {
  /** The sums of the lines. */
  readonly tally: LedgerTally;
  readonly #findings: Finding[] = [];
  #findingCount = 0;
  #lines = 0;
  #seq = 0;
  /** The balance in the last line. */
  #lastBalance = 0n;
  /** A request that the next line may complete with what was absorbed above the hold. */
  #request: OpenRequest | undefined;
  /** The latest charged requests, and their lines. */
  #recent = new Map<string, number>();
  /**
   * The ones before them, forgotten together: the first entry of a Map is found behind all that were deleted before it,
   * which took 7 to 40 us of each line.
   */
  #earlier: ReadonlyMap<string, number> = new Map();
  #requestsOut: LedgerRequest[] = [];
  #paymentsOut: LedgerPayment[] = [];

  constructor(tag: AccountTag) {
    this.tally = new LedgerTally(tag);
  }

  /** Number of the last line seen. */
  get seq(): number {
    return this.#seq;
  }
  get lines(): number {
    return this.#lines;
  }
  get findings(): readonly Finding[] {
    return this.#findings;
  }
  get findingCount(): number {
    return this.#findingCount;
  }
  /** Ids of the cards that the account was given. */
  get cards(): readonly string[] {
    return [...this.tally.sums.cards.keys()].map((account) => account.slice(entitlementAccount("").length));
  }

  /** Requests whose last line was seen since the previous call. */
  takeRequests(): readonly LedgerRequest[] {
    const requests = this.#requestsOut;
    this.#requestsOut = [];
    return requests;
  }

  /** Payments whose line was seen since the previous call. */
  takePayments(): readonly LedgerPayment[] {
    const payments = this.#paymentsOut;
    this.#paymentsOut = [];
    return payments;
  }

  /** Takes the next line. */
  add(line: LedgerLine): void {
    if (line.kind === "opening") this.#open(line);
    else this.#walk(line);
  }

  #walk(line: LedgerLine): void {
    this.#inOrder(line);
    this.#lines += 1;
    if (line.kind === "unreadable") {
      this.find("line_unreadable", "The entry is not a valid ledger line.", line.seq);
      return;
    }
    const charges = line.kind === "usage" || line.kind === "absorbed";
    const goesOn = charges && this.#request !== undefined && this.#request.first.reference === line.reference;
    const isRest = line.debit === OVER_HOLD || line.debit === CUT;
    const completes = goesOn && this.#request?.usage !== undefined && isRest;
    if (completes && this.#request) this.#request[line.debit === CUT ? "cutOverHold" : "overHold"] += line.amount;
    if (!goesOn || line.kind === "usage") this.#endRequest();
    const memo = charges && !completes ? readMemo(line.memo) : undefined;
    // A line that completes a charge has the facts of the charge's own line.
    this.tally.add(line, completes ? this.#request?.usage?.memo : memo);
    if (line.kind === "topup" || line.kind === "adjust") {
      this.#paymentsOut.push({ id: line.reference, line: line.seq, amount: this.tally.moved(line) });
    }
    this.#judgeSides(line);
    if (line.kind === "usage") this.#judgeTwice(line);
    if (memo) this.#judgeAttempts(line, memo);
    if (memo && line.kind === "absorbed") this.#judgeAbsorbed(line, memo);
    if (charges && !this.#request) {
      const usage = line.kind === "usage" && memo ? { line, memo } : undefined;
      this.#request = { first: line, usage, overHold: 0n, cutOverHold: 0n };
    }
    this.#judgeBalance(line);
  }

  /** There is no further line for now: judges what the last line left open. */
  end(): void {
    this.#endRequest();
  }

  /** Records a finding. */
  find(check: string, what: string, line?: number, about?: string): void {
    this.#findingCount += 1;
    if (this.#findings.length < FINDINGS_MAX) this.#findings.push({ check, line, about, what });
  }

  /**
   * An opening line replaces all lines before it. A walk that has just read those lines from the archive compares; any
   * other walk starts at the opening line, even one that was under way when the lines were archived.
   */
  #open(line: LedgerLine): void {
    const facts = readOpening(line.memo);
    if (!facts) {
      this.find("opening", "The memo does not say what was archived.", line.seq);
      this.#seq = Math.max(line.seq, this.#seq);
      return;
    }
    this.end();
    if (this.#seq === line.seq) this.#compareOpening(line, facts);
    else this.#begin(line, facts);
    const sum = [...facts.totals.values()].reduce((total, amount) => total + amount, 0n);
    if (sum !== 0n)
      this.find("opening", `The archived lines sum up to ${formatUsd(sum)} USD instead of zero.`, line.seq);
  }

  #compareOpening(line: LedgerLine, facts: OpeningFacts): void {
    const { balance } = this.tally.sums;
    const walked = JSON.stringify(openingShape(this.tally.facts, facts));
    if (balance === line.balance && walked === JSON.stringify(openingShape(facts, facts))) return;
    const words = `${formatUsd(line.balance)} USD; the archived lines give ${formatUsd(balance)}`;
    this.find("opening", `The opening line does not follow from the archive: its balance is ${words}.`, line.seq);
  }

  #begin(line: LedgerLine, facts: OpeningFacts): void {
    this.#seq = line.seq;
    this.#lastBalance = line.balance;
    this.tally.begin(line, facts);
  }

  #inOrder({ seq }: LedgerLine): void {
    if (seq !== this.#seq + 1) {
      const missing =
        seq > this.#seq + 1 ? `line ${this.#seq + 1} is missing before it` : "its number does not increase";
      this.find("line_order", `The lines are not numbered without gaps: ${missing}.`, seq);
    }
    this.#seq = Math.max(seq, this.#seq);
  }

  #judgeSides({ seq, kind, debit, credit, amount }: LedgerLine): void {
    if (amount < 0n) this.find("line_amount", `The amount is negative: ${formatUsd(amount)} USD.`, seq);
    const [from, to] = [this.tally.kindOf(debit), this.tally.kindOf(credit)];
    if (SIDES[kind]?.some(([a, b]) => a === from && b === to)) return;
    this.find("line_sides", `A line of the kind ${kind} does not move money from ${debit} to ${credit}.`, seq);
  }

  /**
   * A line must fit the one before it or the sum of all. One wrong line is reported once, without all the lines after
   * it.
   */
  #judgeBalance(line: LedgerLine): void {
    const sum = this.tally.sums.balance;
    if (line.balance !== sum && line.balance !== this.#lastBalance + this.tally.moved(line)) {
      const words = `The balance after it is ${formatUsd(line.balance)} USD; the lines give ${formatUsd(sum)}.`;
      this.find("line_balance", words, line.seq);
    }
    this.#lastBalance = line.balance;
  }

  /** A request is charged once. */
  #judgeTwice({ reference, seq }: LedgerLine): void {
    const before = this.#recent.get(reference) ?? this.#earlier.get(reference);
    if (before !== undefined) this.find("charged_twice", `Line ${before} already charged ${reference}.`, seq);
    this.#recent.set(reference, seq);
    if (this.#recent.size < RECENT_REQUESTS_MIN) return;
    this.#earlier = this.#recent;
    this.#recent = new Map();
  }

  /** The charge and what was absorbed because neither hold nor funds covered it are together the whole price. */
  #endRequest(): void {
    const request = this.#request;
    if (!request) return;
    this.#request = undefined;
    const { first, usage, overHold, cutOverHold } = request;
    const ended = { requestId: first.reference, line: first.seq, atMs: first.atMs };
    if (!usage) {
      this.#requestsOut.push({ ...ended, owed: 0n });
      return;
    }
    const { line, memo } = usage;
    const paid = line.amount + overHold;
    const figures = this.#figuresOf(line, memo);
    // A card without a quota pays any charge, with lines of 0. The line that gave the card may come after them: a store
    // that lost both can get the charge back first.
    const quota = this.tally.sums.cards.get(line.debit)?.quota;
    const unmetered = quota === 0n || (quota === undefined && paid === 0n && line.debit.startsWith("ent_"));
    this.#requestsOut.push({ ...ended, owed: unmetered ? undefined : paid });
    if (figures) this.#compare(line, paid + cutOverHold, unmetered ? 0n : figures.owed);
  }

  #judgeAbsorbed(line: LedgerLine, memo: Memo): void {
    const figures = this.#figuresOf(line, memo);
    if (figures) this.#compare(line, line.amount, figures.cost);
  }

  /** The cost of the answered attempt must follow from the line too. */
  #judgeAttempts({ seq }: LedgerLine, memo: Memo): void {
    const attempts = attemptsOf(memo);
    if (!attempts) this.find("attempts", "The memo lacks the figures of the attempts.", seq);
    for (const { upstream, cost, computed = cost } of attempts ?? []) {
      if (cost === computed) continue;
      const words = `The attempt at ${upstream} cost ${formatUsd(cost)} USD; its tokens give ${formatUsd(computed)}.`;
      this.find("attempts", words, seq);
    }
  }

  #figuresOf({ seq }: LedgerLine, memo: Memo): { cost: NanoUsd; owed: NanoUsd } | undefined {
    const figures = recompute(memo);
    if (!figures) this.find("charge", "The memo lacks the figures from which the charge was computed.", seq);
    return figures;
  }

  #compare({ seq, reference }: LedgerLine, amount: bigint, computed: bigint): void {
    if (amount === computed) return;
    const words = `${formatUsd(amount)} USD; its tokens at its prices give ${formatUsd(computed)}`;
    this.find("charge", `The charge of ${reference} is ${words}.`, seq);
  }
}

/** The facts in an order that does not depend on their source. Members that `shown` lacks are left out. */
function openingShape({ spent, topped, totals, cards, charged, counts, payments }: OpeningFacts, shown: OpeningFacts) {
  const sorted = (amounts: ReadonlyMap<string, bigint>) => [...amounts].map(([name, one]) => `${name} ${one}`).sort();
  const worth = [...cards].map(([id, { quota, spent: paid }]) => `${id} ${quota} ${paid}`).sort();
  const counted = shown.counts && [...(counts ?? [])].map(([group, one]) => `${group} ${JSON.stringify(one)}`).sort();
  const own = [`${spent}`, `${topped}`, sorted(totals), worth, sorted(charged)];
  return [...own, counted, shown.payments === undefined ? undefined : payments];
}
