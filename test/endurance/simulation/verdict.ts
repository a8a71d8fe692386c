/**
 * The store held against the truth, once everything has been well for long enough: docs/failure-model.md invariants 2,
 * 4, 5 and 9 to 12.
 */
import { auditAccount } from "../../../src/store/ledger/audit.ts";
import type { LedgerLine } from "../../../src/store/records.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { auditToEnd } from "../../rig/audit-to-end.ts";
import type { Violation } from "./books.ts";
import type { Gateway } from "./gateway.ts";
import type { Server } from "./server.ts";
import { type SeenRequest, type Truth, wordOf } from "./truth.ts";

/** What the ledger says of one request. */
interface Entry {
  readonly tag: AccountTag;
  charged: bigint | undefined;
  debit: string;
  overHold: bigint;
  absorbed: bigint;
}

export interface VerdictParts {
  readonly truth: Truth;
  readonly server: Server;
  readonly gateways: readonly Gateway[];
}

export interface Verdict {
  readonly violations: readonly Violation[];
  readonly missing: number;
  readonly unbalanced: number;
}

export async function judge(parts: VerdictParts): Promise<Verdict> {
  forgetUnrecorded(parts.truth);
  const violations: Violation[] = [];
  const wrong: Wrong = (invariant, what) => violations.push({ invariant, what });
  const entries = new Map<string, Entry>();
  const payments = new Map<string, bigint>();
  for (const tag of parts.truth.accounts.keys()) await readAccount(tag, parts, entries, payments, wrong);
  const unbalanced = violations.length;
  judgeRequests(parts, entries, wrong);
  const missing = violations.length - unbalanced;
  judgePayments(parts.truth, payments, wrong);
  await judgeKeys(parts, wrong);
  await judgeCodes(parts, wrong);
  return { violations, missing, unbalanced };
}

/** A gateway that was short of room has logged that it can restore no more; nobody knows which writes it had. */
function mayForget({ forgetful }: Truth): boolean {
  return forgetful.size > 0;
}

/** What no journal had, as the log said, is not promised: an account with all that belongs to it, a key, a code. */
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

async function readAccount(
  tag: AccountTag,
  { server, truth }: VerdictParts,
  entries: Map<string, Entry>,
  payments: Map<string, bigint>,
  wrong: Wrong,
): Promise<void> {
  const store = server.storeOf(tag);
  const account = await store.getAccount(tag);
  const audit = account && (await auditToEnd(auditAccount(store, account)));
  if (!audit) {
    if (truth.accounts.get(tag)?.answered && !mayForget(truth)) wrong(4, `account ${tag} is gone`);
    return;
  }
  for (const { what } of audit.findings) wrong(1, `account ${tag}: ${what}`);
  for (const line of audit.lines > 0 ? await store.readLedger(tag, 0, 1_000) : [])
    addLine(tag, line, entries, payments);
  const holds = (await store.inspect(tag))?.holds ?? [];
  if (holds.length > 0) wrong(9, `account ${tag}: ${holds.length} holds outlive their time`);
}

function addLine(tag: AccountTag, line: LedgerLine, entries: Map<string, Entry>, payments: Map<string, bigint>): void {
  if (line.kind === "topup" || line.kind === "adjust") {
    payments.set(line.reference, line.debit.startsWith("acct_") ? -line.amount : line.amount);
  }
  if (line.kind !== "usage" && line.kind !== "absorbed") return;
  const entry = entries.get(line.reference) ?? { tag, charged: undefined, debit: "", overHold: 0n, absorbed: 0n };
  entries.set(line.reference, entry);
  if (line.kind === "usage") {
    entry.charged = line.amount;
    entry.debit = line.debit;
  } else if (line.debit === "absorbed:over_hold") entry.overHold += line.amount;
  else entry.absorbed += line.amount;
}

function judgeRequests({ truth, gateways }: VerdictParts, entries: ReadonlyMap<string, Entry>, wrong: Wrong): void {
  for (const [id, entry] of entries) {
    const seen = truth.requests.get(id as RequestId);
    if (!seen) wrong(5, `request ${id} is in the ledger and was never admitted`);
    else if (entry.charged !== undefined && entry.charged > 0n && !seen.attempted) {
      wrong(5, `request ${id} is charged and nothing was attempted`);
    } else if (entry.debit !== "" && entry.debit.startsWith("ent_") !== (seen.entitlement !== undefined)) {
      wrong(12, `request ${id} is paid by ${entry.debit}`);
    }
  }
  const lossy = new Set(gateways.filter(({ hasLost }) => hasLost).map(({ name }) => name));
  for (const [id, seen] of truth.requests) judgeRequest(id, seen, entries.get(id), { truth, lossy }, wrong);
}

function judgeRequest(
  id: RequestId,
  seen: SeenRequest,
  entry: Entry | undefined,
  { truth, lossy }: { truth: Truth; lossy: ReadonlySet<string> },
  wrong: Wrong,
): void {
  const word = entry?.charged === undefined ? "void" : String(entry.charged + entry.overHold);
  const letter = truth.letters.get(id);
  if (letter !== undefined && !seen.unrecorded) wrong(4, `request ${id} became a dead letter: ${letter}`);
  // A gateway that was short of room has logged that it can restore no more.
  if (letter !== undefined || truth.forgetful.has(seen.gateway)) return;
  const promised = seen.answered && !seen.unrecorded;
  const expected = promised ? new Set([wordOf(seen.last)]) : lossy.has(seen.gateway) ? seen.told : seen.left;
  if (!expected.has(word) && !(seen.unrecorded && seen.told.has(word))) {
    wrong(4, `request ${id} of ${seen.gateway} is "${word}" in the ledger, not ${[...expected].join(" or ")}`);
  }
  if (promised && (entry?.absorbed ?? 0n) !== seen.last.absorbed) {
    wrong(4, `request ${id} has ${entry?.absorbed} absorbed, not ${seen.last.absorbed}`);
  }
}

function judgePayments(truth: Truth, payments: ReadonlyMap<string, bigint>, wrong: Wrong): void {
  for (const [id, { amount, answered }] of truth.payments) {
    const paid = payments.get(id);
    if (paid !== undefined && paid !== amount) wrong(10, `payment ${id} of ${amount} counts ${paid}`);
    if (paid !== undefined || !answered || mayForget(truth)) continue;
    // What was taken from an account may have been spent by the time it is taken again; that is logged for the
    // operator.
    const told = amount < 0n && truth.refusedAgain.some((refused) => refused.id === id);
    if (!told) wrong(10, `payment ${id} of ${amount} was answered and is not there`);
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
    const told = truth.refusedAgain.some((refused) => refused.id.startsWith(id));
    if (told || mayForget(truth)) continue;
    const code = await server.storeOf(undefined).getCode(id);
    if (seen.answered && !code) wrong(11, `code ${id} was made and is not there`);
    if (seen.redeemers.size > 0 && !has.some((tag) => seen.redeemers.has(tag))) {
      wrong(11, `code ${id} was redeemed by ${[...seen.redeemers].join(", ")} and is credited to ${has.join(", ")}`);
    }
    if (seen.voiding === "answered" && code?.state !== "void") wrong(11, `code ${id} is ${code?.state}, not void`);
  }
}
