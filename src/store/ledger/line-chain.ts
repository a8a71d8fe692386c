/**
 * A chain of digests over ledger lines: each link is the SHA-256 of the link before it and the whole text of a line, every
 * member of it (`textOf`). Who has the last link has all lines, in their order: one that is changed, left out, put in or
 * moved gives another. The steps in which lines are archived do not show in it.
 */
import { createHash } from "node:crypto";
import type { LedgerLine } from "../records.ts";
import { textOf } from "./plain-line.ts";

export interface LineChain {
  /** Number of the first line that is in it: 1, unless a version without a chain has archived lines before. */
  readonly from: number;
  /** The last link, in hex. */
  readonly sha256: string;
}

/** The chain before its first line. It has the account in it, so that no two accounts have links in common. */
export function newChain(account: string, from: number): LineChain {
  return { from, sha256: createHash("sha256").update(`tollgate ledger ${account} ${from}\n`).digest("hex") };
}

/** @param text of the line, with its line feed. */
export function chainedText({ from, sha256 }: LineChain, text: string): LineChain {
  return { from, sha256: createHash("sha256").update(sha256).update(text).digest("hex") };
}

export function chained(chain: LineChain, lines: Iterable<LedgerLine>): LineChain {
  let last = chain;
  for (const line of lines) last = chainedText(last, textOf(line));
  return last;
}

/** @returns undefined for a text that is no chain. */
export function chainOf(value: unknown): LineChain | undefined {
  const { from, sha256 } = (value ?? {}) as { from?: unknown; sha256?: unknown };
  const isOne = Number.isSafeInteger(from) && typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256);
  return isOne ? { from: from as number, sha256 } : undefined;
}
