/**
 * The simulation before the judge (`test/endurance/judge/`): describes what outside observers saw and what the store
 * contains once everything has been well for long enough, and says which invariant of docs/failure-model.md each
 * finding violates. Keys and codes, which no other run changes, are compared here.
 */
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import type { FindingKind } from "../judge/findings.ts";
import { type AccountAtEnd, exactly, judge, type Owed, type SeenPayment, type SeenRequest } from "../judge/judge.ts";
import { lineOf } from "../judge/line.ts";
import type { Violation } from "./books.ts";
import type { Gateway } from "./gateway.ts";
import { INVARIANTS } from "./invariants.ts";
import type { Server } from "./server.ts";
import { resultOf, type SeenRequest as Seen, type Truth, VOID } from "./truth.ts";

export interface VerdictParts {
  readonly truth: Truth;
  readonly server: Server;
  readonly gateways: readonly Gateway[];
}

export interface Verdict {
  readonly violations: readonly Violation[];
  /** The number of findings about a request's charge. */
  readonly missing: number;
}

const ABOUT_REQUESTS: ReadonlySet<FindingKind> = new Set([
  "missing",
  "wrong_amount",
  "wrong_account",
  "wrong_absorbed",
  "not_its_worth",
  "above_hold",
  "charged_refusals",
  "dead_letters",
  "not_attempted",
  "strangers",
  "wrong_source",
]);

export async function judgeWorld(parts: VerdictParts): Promise<Verdict> {
  const { truth } = parts;
  forgetUnrecorded(truth);
  const accounts: AccountAtEnd[] = [];
  for (const tag of truth.accounts.keys()) accounts.push(await accountAtEnd(tag, parts));
  const requests = requestsOf(parts);
  const deadLetters = [...truth.letters].filter(([id]) => !truth.requests.get(id as RequestId)?.unrecorded);
  const findings = judge({ requests, unnamed: 0, payments: paymentsOf(truth), accounts, deadLetters });
  const violations: Violation[] = findings.map(({ kind, what }) => ({ invariant: INVARIANTS[kind] ?? 0, what }));
  const wrong: Wrong = (invariant, what) => violations.push({ invariant, what });
  await judgeKeys(parts, wrong);
  await judgeCodes(parts, wrong);
  return { violations, missing: findings.filter(({ kind }) => ABOUT_REQUESTS.has(kind)).length };
}

/** A gateway that was short of disk space has logged that it cannot restore more. Which writes it had is not known. */
function mayForget({ forgetful }: Truth): boolean {
  return forgetful.size > 0;
}

/**
 * What was in no journal, according to the log, is not promised: an account with everything that belongs to it, a key,
 * a code.
 */
function forgetUnrecorded(truth: Truth): void {
  for (const write of truth.unrecordedWrites) {
    const [id = ""] = write.split(":");
    truth.keys.delete(id);
    truth.codes.delete(id);
    truth.payments.delete(id);
    if (!truth.accounts.has(id as AccountTag)) continue;
    for (const [key, { tag }] of truth.keys) if (tag === id) truth.keys.delete(key);
    for (const [payment, { tag }] of truth.payments) if (tag === id) truth.payments.delete(payment);
    for (const seen of truth.requests.values()) if (seen.tag === id) seen.unrecorded = true;
    for (const { redeemers } of truth.codes.values()) redeemers.delete(id as AccountTag);
    truth.accounts.set(id as AccountTag, { answered: false });
  }
}

type Wrong = (invariant: number, what: string) => void;

async function accountAtEnd(tag: AccountTag, { server, truth }: VerdictParts): Promise<AccountAtEnd> {
  const store = server.storeOf(tag);
  const account = await store.getAccount(tag);
  const audit = account && (await auditToEnd(auditAccount(store, account)));
  if (!audit) return { name: tag, lines: undefined, mayBeGone: !truth.accounts.get(tag)?.answered || mayForget(truth) };
  const lines = audit.lines > 0 ? await store.readLedger(tag, 0, 1_000) : [];
  const holds = (await store.inspect(tag))?.holds ?? [];
  return {
    name: tag,
    lines: lines.map((line) => lineOf(line)),
    audit: audit.findings.map(({ what }) => what),
    held: holds.length > 0 ? `${holds.length} holds outlive their time` : "",
  };
}

function* requestsOf({ truth, gateways }: VerdictParts): Generator<SeenRequest> {
  const lossy = new Set(gateways.filter(({ hasLost }) => hasLost).map(({ name }) => name));
  for (const [id, seen] of truth.requests) {
    // A gateway that was short of disk space has logged that it cannot restore more.
    const isGivenUp = truth.letters.has(id) || truth.forgetful.has(seen.gateway);
    yield {
      id,
      account: seen.tag,
      owed: isGivenUp ? { amounts: "any", mayBeFree: true } : owedFor(seen, lossy.has(seen.gateway)),
      paidBy: seen.entitlement === undefined ? "balance" : "card",
      attempted: seen.attempted,
      facts: seen.gateway,
    };
  }
}

/** @param lossy whether a disk of its gateway has lost written data. */
function owedFor(seen: Seen, lossy: boolean): Owed {
  const { answered, unrecorded, last, written, left } = seen;
  if (answered && !unrecorded) {
    const { absorbed } = last;
    const result = resultOf(last);
    return result === VOID ? { amounts: new Set(), mayBeFree: true, absorbed } : { ...exactly(result), absorbed };
  }
  const results = unrecorded || lossy ? written : left;
  const amounts = new Set([...results].filter((result) => result !== VOID));
  return { amounts, mayBeFree: results.has(VOID) };
}

function* paymentsOf(truth: Truth): Generator<SeenPayment> {
  for (const [id, { tag, amount, answered }] of truth.payments) {
    // Funds may have been spent by the time their withdrawal is replayed. That is logged for the operator.
    const isRefused = amount < 0n && truth.refusedAgain.some((refused) => refused.id === id);
    yield { account: tag, id, amount, isPromised: answered && !mayForget(truth) && !isRefused };
  }
}

async function judgeKeys({ truth, server }: VerdictParts, wrong: Wrong): Promise<void> {
  for (const [id, seen] of truth.keys) {
    if (!seen.created) continue;
    const key = (await server.storeOf(seen.tag).listKeys(seen.tag)).find((one) => one.id === id);
    if (!key && mayForget(truth)) continue;
    if (!key) wrong(15, `key ${id} was answered and is not there`);
    else if (seen.revocation === "answered" && key.status !== "revoked") wrong(15, `key ${id} is not revoked any more`);
    else if (seen.revocation === "none" && seen.group !== undefined && key.group !== seen.group) {
      wrong(15, `key ${id} is in ${key.group}; the last change that was answered says ${seen.group}`);
    }
  }
}

async function judgeCodes({ truth, server }: VerdictParts, wrong: Wrong): Promise<void> {
  const owners = new Map<string, AccountTag[]>();
  for (const tag of truth.accounts.keys()) {
    for (const { id } of (await server.storeOf(tag).inspect(tag))?.entitlements ?? []) {
      owners.set(id, [...(owners.get(id) ?? []), tag]);
    }
  }
  for (const [id, seen] of truth.codes) {
    const has = owners.get(id) ?? [];
    if (has.length > 1) wrong(11, `code ${id} is credited to ${has.join(" and ")}`);
    const isRefused = truth.refusedAgain.some((refused) => refused.id.startsWith(id));
    if (isRefused || mayForget(truth)) continue;
    const code = await server.storeOf(undefined).getCode(id);
    if (seen.answered && !code) wrong(11, `code ${id} was made and is not there`);
    if (seen.redeemers.size > 0 && !has.some((tag) => seen.redeemers.has(tag))) {
      wrong(11, `code ${id} was redeemed by ${[...seen.redeemers].join(", ")} and is credited to ${has.join(", ")}`);
    }
    if (seen.voiding === "answered" && code?.state !== "void") wrong(11, `code ${id} is ${code?.state}, not void`);
  }
}
