/**
 * The one judge of all endurance tests: what clients and operators saw of a run, against the ledgers and the log that it
 * left. Each run describes what was seen in these plain words, so that what is demanded of one is demanded of all.
 */
import { Chain } from "./chain.ts";
import type { Finding, Report } from "./findings.ts";
import type { Line } from "./line.ts";

/** What a request may cost. */
export interface Owed {
  /** Charges that are right, with what was absorbed above the hold; `any`: what the line's own counts and prices give. */
  readonly amounts: ReadonlySet<bigint> | "any";
  /** Whether it may as well cost nothing. */
  readonly mayBeFree: boolean;
  /** The amounts hold only where the upstream's count is the bill: a client that was given an estimate cannot tell. */
  readonly unlessEstimated?: boolean;
  /** What the operator bears, but for what was above the hold; undefined: not known. */
  readonly absorbed?: bigint;
}

/** Refused, or never charged: it has to be free. */
export const NOTHING: Owed = { amounts: new Set(), mayBeFree: true };
/** Nobody saw its end. */
export const UNKNOWN: Owed = { amounts: "any", mayBeFree: true };
/** Answered, by figures that the client does not have. */
export const SOMETHING: Owed = { amounts: "any", mayBeFree: false };

/** Exactly this amount. */
export function exactly(amount: bigint): Owed {
  return { amounts: new Set([amount]), mayBeFree: false };
}

/** One request as it was seen from outside. */
export interface SeenRequest {
  /** As the ledger's lines refer to it. */
  readonly id: string;
  /** Who asked; undefined where that is not known. */
  readonly account?: string | undefined;
  readonly owed: Owed;
  /** The HTTP status that its client got; undefined when none came. */
  readonly status?: number | undefined;
  /** What has to pay, if anything does. */
  readonly paidBy?: "card" | "balance" | undefined;
  /** False: no upstream was asked. */
  readonly attempted?: boolean;
  /** Input prices, nano-dollars per million tokens, that were in force while it ran; undefined: not looked at. */
  readonly inputPrices?: ReadonlySet<bigint>;
  /** What nothing explains in the answer itself. */
  readonly unexpected?: readonly string[];
  /** For a person who looks into a finding. */
  readonly facts?: unknown;
}

/** One payment or adjustment as an operator saw it. */
export interface SeenPayment {
  readonly account: string;
  readonly id: string;
  /** Negative where it was taken from the account. */
  readonly amount: bigint;
  /** Whether it must be there: it was acknowledged, and nobody was told that it is gone. */
  readonly isPromised: boolean;
}

/** One account when all is over. */
export interface AccountAtEnd {
  readonly name: string;
  /** Its whole ledger, oldest line first; undefined when the account is not there. */
  readonly lines: readonly Line[] | undefined;
  /** Whether it may be gone. */
  readonly mayBeGone?: boolean;
  /** What the product's own audit says against it. */
  readonly audit?: readonly string[];
  /** What is still held, in words; empty when nothing is; undefined when that was not waited for. */
  readonly held?: string | undefined;
  /** The least balance, or balance less holds, that anybody saw while the run went on. */
  readonly lowest?: bigint | undefined;
}

/** What the gateway's log says of one request. */
export interface LoggedRequest {
  readonly id: string;
  readonly status: unknown;
  /** How its stream ended; undefined for one that was no stream. */
  readonly end: string | undefined;
  readonly charged: bigint | undefined;
}

/** A run, and what is left of it. */
export interface Run {
  readonly requests: Iterable<SeenRequest>;
  /** Requests whose clients never learned the id: so many more may be in log and ledgers. `any`: not counted. */
  readonly unnamed: number | "any";
  readonly payments: Iterable<SeenPayment>;
  readonly accounts: Iterable<AccountAtEnd>;
  /** Undefined where processes were killed that had not written all of it. */
  readonly log?: readonly LoggedRequest[];
  /** Charges that were given up, by request, with the reason. */
  readonly deadLetters?: Iterable<readonly [id: string, reason: string]>;
  /** What has to be zero when all is over, by name. */
  readonly leftOver?: Readonly<Record<string, number>>;
  /** Whether upstreams of this run never count more than was held, so that a cut answer keeps to its hold as well. */
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

/** What the ledgers say of one request. */
interface Entry {
  readonly account: string;
  /** Undefined when only something was absorbed. */
  charge: Line | undefined;
  overHold: bigint;
  absorbed: bigint;
}

interface Ledgers {
  readonly entries: ReadonlyMap<string, Entry>;
  /** By account and id, what was paid in. */
  readonly payments: ReadonlyMap<string, bigint>;
}

function readLedgers(accounts: Iterable<AccountAtEnd>, report: Report): Ledgers {
  const entries = new Map<string, Entry>();
  const payments = new Map<string, bigint>();
  for (const { name, lines, mayBeGone = false, audit = [], held = "", lowest = 0n } of accounts) {
    if (!lines && !mayBeGone) report("accounts_missing", `account ${name} is gone`);
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

/** What no client paid of a charge, for want of funds or since the answer broke off. */
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

/** What was taken from the client, and what it could not pay. */
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
  wrong(isFree ? "charged_refusals" : "wrong_amount", `is charged ${total}, and owes ${words || "what it was told"}`);
}

/** Whether the bill may be an estimate: by the ledger, or by a log that has the end of the stream. */
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
  if (!attempted && amount > 0n) wrong("not_attempted", "is charged and nothing was attempted");
  if (inputPrices && !inputPrices.has(bill?.inputPrice ?? -1n)) {
    wrong("wrong_price", `has an input price of ${bill?.inputPrice}; in force were ${[...inputPrices].join(", ")}`);
  }
}

/** A charge by itself, whoever asked. */
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
  // A card without a quota pays for everything, and no amount is taken from it.
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

/** Compares log and ledgers, regardless of what clients saw. */
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
  report(kind, `${strangers.length} requests that nobody sent, ${strangers[0]} one of them`);
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
