/**
 * The judge of all endurance tests. It compares what clients and operators saw of a run with the ledgers and the log
 * that it left. Each run describes what was seen in these types, so that all runs are held to the same rules.
 */
import { Chain } from "./chain.ts";
import type { Finding, Report } from "./findings.ts";
import type { Line } from "./line.ts";

/** What a request must or may cost. */
export interface Owed {
  /**
   * The correct charges, including what was absorbed above the hold. With `any`, the line's own counts and prices
   * decide.
   */
  readonly amounts: ReadonlySet<bigint> | "any";
  /** Whether it may also cost nothing. */
  readonly mayBeFree: boolean;
  /**
   * The amounts apply only if the upstream's count was billed. A client that got an estimate cannot know the charge.
   */
  readonly unlessEstimated?: boolean;
  /** What the operator absorbs, except for amounts above the hold; undefined if not known. */
  readonly absorbed?: bigint;
}

/** Refused, or never charged: it must cost nothing. */
export const NOTHING: Owed = { amounts: new Set(), mayBeFree: true };
/** Its end is not known. */
export const UNKNOWN: Owed = { amounts: "any", mayBeFree: true };
/** Answered, and charged by counts that the client does not have. */
export const SOMETHING: Owed = { amounts: "any", mayBeFree: false };

/** Exactly this amount. */
export function exactly(amount: bigint): Owed {
  return { amounts: new Set([amount]), mayBeFree: false };
}

/** One request as seen from outside. */
export interface SeenRequest {
  /** The id in the ledger's lines. */
  readonly id: string;
  /** The account that sent it; undefined if not known. */
  readonly account?: string | undefined;
  readonly owed: Owed;
  /** The HTTP status that its client got; undefined if it got none. */
  readonly status?: number | undefined;
  /** Whether the balance or a card must pay, if anything is charged. */
  readonly paidBy?: "card" | "balance" | undefined;
  /** False if no upstream was called. */
  readonly attempted?: boolean;
  /** The input prices that were in force while it ran, nano-dollars per million tokens; undefined if not checked. */
  readonly inputPrices?: ReadonlySet<bigint>;
  /** Properties of the answer itself that nothing explains. */
  readonly unexpected?: readonly string[];
  /** Details for people who investigate a finding. */
  readonly facts?: unknown;
}

/** One payment or adjustment as an operator saw it. */
export interface SeenPayment {
  readonly account: string;
  readonly id: string;
  /** Negative if it was taken from the account. */
  readonly amount: bigint;
  /** Whether it must be there: it was acknowledged, and its loss was not reported. */
  readonly isPromised: boolean;
}

/** One account at the end of the run. */
export interface AccountAtEnd {
  readonly name: string;
  /** Its whole ledger, oldest line first; undefined if the account does not exist. */
  readonly lines: readonly Line[] | undefined;
  /** Whether it may be missing. */
  readonly mayBeGone?: boolean;
  /** The findings of the product's own audit. */
  readonly audit?: readonly string[];
  /** A description of remaining holds; empty if there are none; undefined if the run did not wait for it. */
  readonly held?: string | undefined;
  /** The lowest balance, or balance less holds, that was read during the run. */
  readonly lowest?: bigint | undefined;
}

/** The gateway's log line of one request. */
export interface LoggedRequest {
  readonly id: string;
  readonly status: unknown;
  /** How its stream ended; undefined if it was not a stream. */
  readonly end: string | undefined;
  readonly charged: bigint | undefined;
}

/** A run and what it left. */
export interface Run {
  readonly requests: Iterable<SeenRequest>;
  /**
   * The number of requests whose clients never got the id. At most that many others may be in the log and the ledgers.
   * `any`: not counted.
   */
  readonly unnamed: number | "any";
  readonly payments: Iterable<SeenPayment>;
  readonly accounts: Iterable<AccountAtEnd>;
  /** Undefined if processes were killed before they had written all of it. */
  readonly log?: readonly LoggedRequest[];
  /** Charges that became dead letters, by request, with the reason. */
  readonly deadLetters?: Iterable<readonly [id: string, reason: string]>;
  /** Numbers that must be zero at the end, by name. */
  readonly leftOver?: Readonly<Record<string, number>>;
  /**
   * Whether upstreams of this run never count more than was held, so that the charge of a cut answer is also within the
   * hold.
   */
  readonly countsStayInHold?: boolean;
}

/** Judges a run. @returns everything that is wrong. */
export function judge(run: Run): Finding[] {
  const findings: Finding[] = [];
  const report: Report = (kind, what) => findings.push({ kind, what });
  const ledgers = readLedgers(run.accounts, report);
  const logged = run.log && readLog(run.log, report);
  const seen = new Map<string, SeenRequest>();
  for (const request of run.requests) {
    seen.set(request.id, request);
    judgeRequest(request, ledgers.entries.get(request.id), logged?.get(request.id), report);
    if (logged) compareStatus(request, logged.get(request.id), report);
  }
  for (const [id, entry] of ledgers.entries) judgeEntry(id, entry, run, report);
  if (logged) compareCharges(ledgers.entries, logged, report);
  judgeStrangers(run, seen, [...ledgers.entries.keys()], report, "strangers");
  if (logged) judgeStrangers(run, seen, [...logged.keys()], report, "log_strangers");
  for (const [id, reason] of run.deadLetters ?? []) report("dead_letters", `request ${id} became one: ${reason}`);
  for (const [what, count] of Object.entries(run.leftOver ?? {})) {
    if (count !== 0) report("left_over", `${what}: ${count}`);
  }
  for (const payment of run.payments) judgePayment(payment, ledgers.payments, report);
  return findings;
}

/** What the ledgers contain about one request. */
interface Entry {
  readonly account: string;
  /** Undefined if only an amount was absorbed. */
  charge: Line | undefined;
  overHold: bigint;
  absorbed: bigint;
}

interface Ledgers {
  readonly entries: ReadonlyMap<string, Entry>;
  /** Payments, by account and id. */
  readonly payments: ReadonlyMap<string, bigint>;
}

function readLedgers(accounts: Iterable<AccountAtEnd>, report: Report): Ledgers {
  const entries = new Map<string, Entry>();
  const payments = new Map<string, bigint>();
  for (const { name, lines, mayBeGone = false, audit = [], held = "", lowest = 0n } of accounts) {
    if (!lines && !mayBeGone) report("accounts_missing", `account ${name} is missing`);
    for (const what of audit) report("out_of_balance", `account ${name}: ${what}`);
    if (held !== "") report("held", `account ${name}: ${held}`);
    if (lowest < 0n) report("below_zero", `account ${name} was seen with ${lowest} to spend`);
    const chain = new Chain(name);
    for (const line of lines ?? []) {
      chain.add(line, report);
      if (line.kind === "usage" || line.kind === "absorbed") addCharge(name, line, entries, report);
      if (line.kind === "topup" || line.kind === "adjust") {
        payments.set(`${name} ${line.reference}`, line.debit.startsWith("acct_") ? -line.amount : line.amount);
      }
    }
  }
  return { entries, payments };
}

/** Parts of a charge that no client paid, for lack of funds or because the answer broke off. */
const OVER_HOLD: ReadonlySet<string> = new Set(["absorbed:over_hold", "absorbed:cut_over_hold"]);

function addCharge(account: string, line: Line, entries: Map<string, Entry>, report: Report): void {
  const id = line.reference;
  const entry = entries.get(id) ?? { account, charge: undefined, overHold: 0n, absorbed: 0n };
  entries.set(id, entry);
  if (line.kind === "usage") {
    if (entry.account !== account) report("double", `request ${id} is charged to ${entry.account} and ${account}`);
    entry.charge ??= line;
  } else if (OVER_HOLD.has(line.debit)) entry.overHold += line.amount;
  else entry.absorbed += line.amount;
}

function readLog(log: readonly LoggedRequest[], report: Report): Map<string, LoggedRequest> {
  const logged = new Map<string, LoggedRequest>();
  for (const line of log) {
    if (logged.has(line.id)) report("log_double", `request ${line.id} has two lines in the log`);
    logged.set(line.id, line);
  }
  return logged;
}

/** What was taken from the client, plus what it could not pay. */
function totalOf({ charge, overHold }: Entry): bigint | undefined {
  return charge && charge.amount + overHold;
}

function judgeRequest(seen: SeenRequest, entry: Entry | undefined, logged: LoggedRequest | undefined, report: Report) {
  const { id, owed, unexpected = [] } = seen;
  const wrong: Report = (kind, what) => report(kind, `request ${id} ${what}${factsOf(seen)}`);
  for (const what of unexpected) wrong("unexpected", `got ${what}`);
  const total = entry && totalOf(entry);
  judgeAmount(owed, total, isEstimated(entry, logged), wrong);
  if (owed.absorbed !== undefined && (entry?.absorbed ?? 0n) !== owed.absorbed) {
    wrong("wrong_absorbed", `has ${entry?.absorbed} absorbed, not ${owed.absorbed}`);
  }
  if (entry?.charge) judgeCharge(seen, entry, entry.charge, wrong);
}

function judgeAmount(owed: Owed, total: bigint | undefined, estimated: boolean, wrong: Report): void {
  const { amounts, mayBeFree, unlessEstimated } = owed;
  const words = amounts === "any" ? "a charge" : [...amounts, ...(mayBeFree ? ["nothing"] : [])].join(" or ");
  if (total === undefined) {
    if (!mayBeFree) wrong("missing", `has no charge in the ledger, and owes ${words}`);
    return;
  }
  if (amounts === "any" || amounts.has(total) || (unlessEstimated && estimated)) return;
  const isFree = amounts.size === 0 && mayBeFree;
  wrong(
    isFree ? "charged_refusals" : "wrong_amount",
    `is charged ${total}, and owes ${words || "what its client computed"}`,
  );
}

/** Whether the bill may be an estimate, according to the ledger or to a log with the end of the stream. */
function isEstimated(entry: Entry | undefined, logged: LoggedRequest | undefined): boolean {
  if (logged?.end !== undefined && logged.end !== "complete") return true;
  return entry?.charge?.bill?.counted !== "upstream";
}

function judgeCharge(seen: SeenRequest, entry: Entry, { debit, amount, bill }: Line, wrong: Report): void {
  const { account, paidBy, attempted = true, inputPrices } = seen;
  if (account !== undefined && entry.account !== account) {
    wrong("wrong_account", `of ${account} is charged to ${entry.account}`);
  }
  if (paidBy !== undefined && debit.startsWith("ent_") !== (paidBy === "card")) {
    wrong("wrong_source", `is paid by ${debit}, not by a ${paidBy}`);
  }
  if (!attempted && amount > 0n) wrong("not_attempted", "is charged although no upstream was called");
  if (inputPrices && !inputPrices.has(bill?.inputPrice ?? -1n)) {
    wrong("wrong_price", `has an input price of ${bill?.inputPrice}; in force were ${[...inputPrices].join(", ")}`);
  }
}

/** Checks a charge on its own, without the client's view. */
function judgeEntry(id: string, entry: Entry, { countsStayInHold }: Run, report: Report): void {
  const { charge } = entry;
  const total = totalOf(entry);
  if (!charge || total === undefined) return;
  const { bill } = charge;
  if (!bill) {
    report("not_its_worth", `the charge of request ${id} does not say what it was computed from`);
    return;
  }
  const { worth, hold, counted, ended } = bill;
  const isCounted = counted === "upstream";
  const owed = worth === undefined || isCounted || worth < hold ? worth : hold;
  // A card without a quota pays everything, and no amount is taken from it.
  const isCovered = charge.debit.startsWith("ent_") && total === 0n;
  if (owed !== undefined && total !== owed && !isCovered) {
    report("not_its_worth", `the charge of request ${id} is ${total}; its counts and prices give ${owed}`);
  }
  const isBound = !isCounted || (countsStayInHold && ended !== "complete");
  if (isBound && total > hold) report("above_hold", `request ${id} (${ended}) costs ${total}, and ${hold} was held`);
}

function compareStatus(seen: SeenRequest, logged: LoggedRequest | undefined, report: Report): void {
  if (seen.status === undefined) return;
  if (!logged) report("log_missing", `request ${seen.id} was answered and is not in the log${factsOf(seen)}`);
  else if (logged.status !== seen.status) {
    report("log_differs", `request ${seen.id} has status ${logged.status} in the log${factsOf(seen)}`);
  }
}

/** Compares log and ledgers, without the clients' view. */
function compareCharges(
  entries: ReadonlyMap<string, Entry>,
  logged: ReadonlyMap<string, LoggedRequest>,
  report: Report,
): void {
  for (const [id, entry] of entries) {
    const total = totalOf(entry);
    if (total === undefined) continue;
    const line = logged.get(id);
    if (!line) report("log_missing", `request ${id} is charged and not in the log`);
    else if (line.charged !== total) {
      report("log_differs", `request ${id} costs ${line.charged} in the log and ${total} in the ledger`);
    }
  }
  for (const { id, charged = 0n } of logged.values()) {
    if (charged !== 0n && !entries.get(id)?.charge) {
      report("missing", `request ${id} costs ${charged} in the log and nothing in the ledger`);
    }
  }
}

function judgeStrangers(
  { unnamed }: Run,
  seen: ReadonlyMap<string, SeenRequest>,
  ids: readonly string[],
  report: Report,
  kind: "strangers" | "log_strangers",
): void {
  const strangers = ids.filter((id) => !seen.has(id));
  if (unnamed === "any" || strangers.length <= unnamed) return;
  report(kind, `${strangers.length} requests that were not sent, for example ${strangers[0]}`);
}

function judgePayment(payment: SeenPayment, payments: ReadonlyMap<string, bigint>, report: Report): void {
  const { account, id, amount, isPromised } = payment;
  const paid = payments.get(`${account} ${id}`);
  if (paid === undefined) {
    if (isPromised)
      report("payments_missing", `payment ${id} of ${amount} to ${account} was answered and is not there`);
  } else if (paid !== amount) report("payments_wrong", `payment ${id} of ${amount} to ${account} counts ${paid}`);
}

function factsOf({ facts }: SeenRequest): string {
  return facts === undefined
    ? ""
    : `: ${JSON.stringify(facts, (_, value) => (typeof value === "bigint" ? String(value) : value))}`;
}
