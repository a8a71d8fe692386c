/**
 * A ledger line as plain text: the form in which lines go to the archive and come back from it. Each line is one JSON
 * object with its members always in this order, so that the same lines always have the same digest.
 */
import { createHash } from "node:crypto";
import { parseNano } from "../../values/money.ts";
import type { LedgerLine } from "../records.ts";

const TEXTS = ["kind", "debit", "credit", "reference", "group", "model", "key", "memo"] as const;

/** What JSON carries: amounts are integer strings of nano-dollars. */
type PlainLine = Readonly<Record<(typeof TEXTS)[number] | "amount" | "balance", string>> & {
  readonly seq: number;
  readonly at_ms: number;
};

export function toPlain(line: LedgerLine): PlainLine {
  return {
    seq: line.seq,
    at_ms: line.atMs,
    kind: line.kind,
    debit: line.debit,
    credit: line.credit,
    amount: `${line.amount}`,
    balance: `${line.balance}`,
    reference: line.reference,
    group: line.group,
    model: line.model,
    key: line.key,
    memo: line.memo,
  };
}

/** @returns undefined for a value that is not a line. */
export function fromPlain(value: unknown): LedgerLine | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const plain = value as Readonly<Record<string, unknown>>;
  const { seq, at_ms: atMs } = plain;
  const amount = typeof plain.amount === "string" ? parseNano(plain.amount) : undefined;
  const balance = typeof plain.balance === "string" ? parseNano(plain.balance) : undefined;
  if (amount === undefined || balance === undefined || !Number.isSafeInteger(seq) || !Number.isSafeInteger(atMs)) {
    return undefined;
  }
  if (!TEXTS.every((name) => typeof plain[name] === "string")) return undefined;
  const texts = Object.fromEntries(TEXTS.map((name) => [name, plain[name]]));
  return { ...texts, seq, atMs, amount, balance } as unknown as LedgerLine;
}

/** The text of a line, with its line feed. */
export function textOf(line: LedgerLine): string {
  return `${JSON.stringify(toPlain(line))}\n`;
}

/** SHA-256 of lines in their order, in hex. */
export function digestOf(lines: readonly LedgerLine[]): string {
  const hash = createHash("sha256");
  for (const line of lines) hash.update(textOf(line));
  return hash.digest("hex");
}
