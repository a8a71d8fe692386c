/**
 * A chain of digests over ledger lines. Each link is the SHA-256 of the previous link and the whole text of a line with
 * all its members (`textOf`). The last link proves all lines and their order: a line that is changed, omitted, inserted
 * or moved gives a different link. The size of the archiving steps does not affect it.
 */
import { createHash } from "node:crypto";
import type { LedgerLine } from "../records.ts";
import { textOf } from "./plain-line.ts";

export interface LineChain {
  /** Number of the first line in the chain: 1, unless a version without a chain archived earlier lines. */
  readonly from: number;
  /** The last link, in hex. */
  readonly sha256: string;
}

/** The chain before its first line. It contains the account, so that no two accounts share a link. */
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

/** @returns undefined for a value that is not a chain. */
export function chainOf(value: unknown): LineChain | undefined {
  const { from, sha256 } = (value ?? {}) as { from?: unknown; sha256?: unknown };
  const isOne = Number.isSafeInteger(from) && typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256);
  return isOne ? { from: from as number, sha256 } : undefined;
}
