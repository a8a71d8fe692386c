/**
 * The opening line of a ledger whose beginning is archived: the sums of the archived lines. The balance at every
 * instant is the opening line plus the lines after it; the same is true for the other sums (docs/failure-model.md
 * invariant 1).
 */
import type { AccountTag } from "../../values/key.ts";
import { nanoUsd } from "../../values/money.ts";
import { accountId } from "../names.ts";
import type { LedgerLine } from "../records.ts";
import { SETTLED_MARK_MS } from "../settlement.ts";
import { COUNT_KINDS, countsFrom, type UsageCounts } from "../sums/token-sums.ts";
import { chainOf, type LineChain } from "./line-chain.ts";

/** The most lines that one archiving step replaces: the store does nothing else meanwhile. */
export const ARCHIVE_LINES_MAX = 1_000;
/**
 * Only lines older than this are archived: a settlement may arrive for 48 h, and its mark remains for as long again.
 */
export const ARCHIVE_AGE_MS = SETTLED_MARK_MS;

/** The sums of all archived lines. */
export interface OpeningFacts {
  /** Instant of the very first line. */
  readonly sinceMs: number;
  readonly spent: bigint;
  readonly topped: bigint;
  /** Credits less debits by kind of double-entry account; their sum is zero. */
  readonly totals: ReadonlyMap<string, bigint>;
  /** By ledger account of a card: what it was worth (0 without a quota) and what it has paid. */
  readonly cards: ReadonlyMap<string, { readonly quota: bigint; readonly spent: bigint }>;
  /** What was charged, by group. */
  readonly charged: ReadonlyMap<string, bigint>;
  /** Requests and tokens charged, by group; undefined in a line of a version that did not count them. */
  readonly counts: ReadonlyMap<string, UsageCounts> | undefined;
  /** Number of top-ups and adjustments; undefined as for `counts`. */
  readonly payments: number | undefined;
  /** The chain over every archived line with all its members; undefined in a line of a version without it. */
  readonly chain: LineChain | undefined;
}

export type ArchiveOutcome =
  | "archived"
  /** The ledger already begins with this very line. */
  | "duplicate"
  /** The ledger does not begin where the caller assumes; nothing was changed. */
  | "moved"
  /** A line is younger than ARCHIVE_AGE_MS on the store's clock; nothing was changed. */
  | "too_young"
  | "unknown_account";

/** @param last the last archived line: the opening line takes its number, instant and balance. */
export function openingLine(tag: AccountTag, last: LedgerLine, facts: OpeningFacts): LedgerLine {
  return {
    seq: last.seq,
    atMs: last.atMs,
    kind: "opening",
    debit: "opening",
    credit: accountId(tag),
    amount: nanoUsd(last.balance),
    balance: last.balance,
    reference: `1-${last.seq}`,
    group: "",
    model: "",
    key: "",
    memo: JSON.stringify({
      since_ms: facts.sinceMs,
      spent: `${facts.spent}`,
      topped: `${facts.topped}`,
      totals: texts(facts.totals),
      cards: Object.fromEntries([...facts.cards].map(([id, { quota, spent }]) => [id, [`${quota}`, `${spent}`]])),
      charged: texts(facts.charged),
      ...(facts.counts && {
        counts: Object.fromEntries([...facts.counts].map(([group, one]) => [group, listOf(one)])),
      }),
      ...(facts.payments !== undefined && { payments: facts.payments }),
      ...(facts.chain && { chain: facts.chain }),
    }),
  };
}

/** @returns undefined for a memo that does not belong to an opening line. */
export function readOpening(memo: string): OpeningFacts | undefined {
  try {
    const json = JSON.parse(memo) as Record<string, unknown>;
    const cards = Object.entries(json.cards as Record<string, [string, string]>);
    return {
      sinceMs: Number(json.since_ms),
      spent: BigInt(json.spent as string),
      topped: BigInt(json.topped as string),
      totals: amounts(json.totals),
      cards: new Map(cards.map(([id, [quota, spent]]) => [id, { quota: BigInt(quota), spent: BigInt(spent) }])),
      charged: amounts(json.charged),
      counts: countsOf(json.counts),
      payments: Number.isSafeInteger(json.payments) ? (json.payments as number) : undefined,
      chain: chainOf(json.chain),
    };
  } catch {
    return undefined;
  }
}

function texts(amounts: ReadonlyMap<string, bigint>): Record<string, string> {
  return Object.fromEntries([...amounts].map(([name, amount]) => [name, `${amount}`]));
}

function amounts(value: unknown): Map<string, bigint> {
  return new Map(Object.entries(value as Record<string, string>).map(([name, amount]) => [name, BigInt(amount)]));
}

const listOf = (counts: UsageCounts): number[] => COUNT_KINDS.map((kind) => counts[kind]);

function countsOf(value: unknown): Map<string, UsageCounts> | undefined {
  if (value === undefined) return undefined;
  const groups = Object.entries(value as Record<string, readonly number[]>);
  return new Map(groups.map(([group, list]) => [group, countsFrom((kind) => list[COUNT_KINDS.indexOf(kind)] ?? 0)]));
}
