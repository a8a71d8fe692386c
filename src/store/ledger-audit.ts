/** The audit of accounts: every figure that the store keeps is compared with the ledger lines that it must follow from. */
import type { AccountTag } from "../values/key.ts";
import { formatUsd } from "../values/money.ts";
import { utcDay } from "../values/time.ts";
import { HALF_DONE_CHECKS } from "./audit/half-done.ts";
import type { Store } from "./contract.ts";
import { type Finding, LedgerWalk } from "./ledger-walk.ts";
import { accountId } from "./names.ts";
import { type Account, type AccountState, DAYS_MAX } from "./records.ts";
import { SETTLE_HORIZON_MS } from "./settlement.ts";

export type AuditStore = Pick<Store, "getAccount" | "listCards" | "getCode" | "readDays" | "readLedger" | "inspect">;

export interface AuditOptions {
  /** Awaited between reads, so that a long ledger never keeps the process from its requests. */
  readonly pause: () => Promise<void>;
  /** Lines that one read takes; at most the store's page. */
  readonly pageLines: number;
  /** Whether holds are summed up one by one, which reads the whole account at once. */
  readonly holds: boolean;
}

export interface AccountAudit {
  readonly account: Account;
  readonly lines: number;
  readonly sums: LedgerWalk["sums"];
  readonly totals: LedgerWalk["totals"];
  /** `busy`: the account moved all the time, so its figures could not be compared. */
  readonly outcome: "balanced" | "unbalanced" | "busy";
  readonly findings: readonly Finding[];
  /** All findings, those that are not kept included. */
  readonly findingCount: number;
}

const DAY_MS = 86_400_000;
const SPAN_MARGIN_MS = SETTLE_HORIZON_MS + DAY_MS;

/** Times that an account may move between two reads before it counts as busy. */
const TRIES_MAX = 20;

/**
 * Audits one account: lines numbered without gaps, money moved between the accounts that the kind of line names, balances
 * after each line, charges computed again from their figures; then balance, spent, topped up and cards against the lines.
 * @returns undefined when there is no such account.
 * @throws StoreError
 */
export async function auditAccount(
  store: AuditStore,
  tag: AccountTag,
  options: AuditOptions,
): Promise<AccountAudit | undefined> {
  const walk = new LedgerWalk(tag);
  await readOn(store, tag, walk, options);
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const account = await store.getAccount(tag);
    if (!account) return undefined;
    const cards = (await store.listCards(tag))?.cards ?? [];
    const days = await chargedByDays(store, tag, walk);
    // Nothing was written since the last line that was read, so these figures are of the same instant.
    if ((await readOn(store, tag, walk, options)) > 0) continue;
    walk.end();
    compare(walk, "balance", account.balance, walk.sums.balance);
    compare(walk, "sum spent", account.spent, walk.sums.spent);
    compare(walk, "sum topped up", account.topped, walk.sums.topped);
    for (const { id, spent } of cards) compare(walk, `sum spent on the card ${id}`, spent, walk.spentOf(id));
    for (const group of new Set([...days.keys(), ...walk.charged.keys()])) {
      const [kept, sum] = [days.get(group) ?? 0n, walk.charged.get(group) ?? 0n];
      compare(walk, `sum of all days in the group ${group}`, kept, sum);
    }
    await compareCodes(store, tag, walk, options);
    if (account.held < 0n || account.held > account.balance) {
      walk.find(`Of a balance of ${formatUsd(account.balance)} USD ${formatUsd(account.held)} are held.`);
    }
    if (options.holds) await compareRecord(store, tag, walk, options);
    return outcomeOf(account, walk, walk.findingCount === 0 ? "balanced" : "unbalanced");
  }
  const account = await store.getAccount(tag);
  return account && outcomeOf(account, walk, walk.findingCount === 0 ? "busy" : "unbalanced");
}

/** What the sums per day say was charged, by group. */
async function chargedByDays(
  store: AuditStore,
  tag: AccountTag,
  { instants }: LedgerWalk,
): Promise<ReadonlyMap<string, bigint>> {
  const charged = new Map<string, bigint>();
  // A request counts on the day of its admission, up to the settle horizon before its line, by whatever clock.
  const endMs = (instants?.last ?? 0) + SPAN_MARGIN_MS;
  let fromMs = (instants?.first ?? SPAN_MARGIN_MS) - SPAN_MARGIN_MS;
  while (instants && fromMs <= endMs) {
    const untilMs = Math.min(fromMs + (DAYS_MAX - 1) * DAY_MS, endMs);
    for (const { group, amount } of await store.readDays(tag, utcDay(fromMs), utcDay(untilMs))) {
      charged.set(group, (charged.get(group) ?? 0n) + amount);
    }
    fromMs = untilMs + DAY_MS;
  }
  return charged;
}

/**
 * A code is one account's: where its own record names another, or none, a failover has forgotten a redemption and the
 * code can be, or was, redeemed twice (reliability 3.9, residual).
 */
async function compareCodes(
  store: AuditStore,
  tag: AccountTag,
  walk: LedgerWalk,
  options: AuditOptions,
): Promise<void> {
  for (const [index, id] of walk.cards.entries()) {
    const code = await store.getCode(id);
    // A card that was given without a code has none.
    if (code && code.tag !== tag) {
      const whose = code.tag === undefined ? "nobody" : accountId(code.tag);
      walk.find(`The code ${id} has paid here, but its own record says that ${whose} has it (${code.state}).`);
    }
    if (index % options.pageLines === options.pageLines - 1) await options.pause();
  }
}

/** Walks what has been written since. @returns how many lines that was. */
async function readOn(store: AuditStore, tag: AccountTag, walk: LedgerWalk, options: AuditOptions): Promise<number> {
  let count = 0;
  for (;;) {
    const lines = await store.readLedger(tag, walk.seq, options.pageLines);
    for (const line of lines) walk.add(line);
    count += lines.length;
    if (lines.length < options.pageLines) return count;
    await options.pause();
  }
}

/**
 * What only the whole record of an account tells: its holds one by one, and whether its last line is the one that it
 * counted last. Not every store reads all of it at one instant, so only what lasts is wrong.
 */
async function compareRecord(
  store: AuditStore,
  tag: AccountTag,
  walk: LedgerWalk,
  { pause }: AuditOptions,
): Promise<void> {
  let wrong: readonly string[] = [];
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const state = await store.inspect(tag);
    wrong = state ? contradictions(state) : [];
    if (wrong.length === 0) return;
    await pause();
  }
  for (const what of wrong) walk.find(what);
}

function contradictions(state: AccountState): string[] {
  const { account, holds, seq, ledger } = state;
  const ofBalance = holds.filter(({ entitlement }) => entitlement === undefined);
  const sum = ofBalance.reduce((total, { amount }) => total + amount, 0n);
  const last = ledger.at(-1)?.seq ?? 0;
  return [
    ...HALF_DONE_CHECKS.flatMap((check) => check(state).map(({ what }) => what)),
    ...(sum === account.held
      ? []
      : [`${formatUsd(account.held)} USD are held; the holds sum up to ${formatUsd(sum)}.`]),
    ...(seq === last ? [] : [`${seq} lines were written; the last one that is there is line ${last}.`]),
  ];
}

function compare(walk: LedgerWalk, what: string, kept: bigint, sum: bigint): void {
  if (kept === sum) return;
  walk.find(`The ${what} is ${formatUsd(kept)} USD; the lines sum up to ${formatUsd(sum)}.`);
}

function outcomeOf(account: Account, walk: LedgerWalk, outcome: AccountAudit["outcome"]): AccountAudit {
  const { lines, sums, totals, findings, findingCount } = walk;
  return { account, lines, sums, totals, outcome, findings, findingCount };
}
