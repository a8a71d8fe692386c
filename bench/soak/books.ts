/**
 * Every request three times: as its client saw it, as the gateway's log has it, and as the ledger has it. What they say must
 * be one and the same.
 */
import { parseUsd } from "../../src/values/money.ts";
import type { Seen } from "./client.ts";
import { type House, type LogLine, PRICE } from "./house.ts";
import type { Reading } from "./reading.ts";

export interface LedgerLine {
  readonly kind: string;
  readonly usd: string;
  readonly reference: string;
  readonly usage: { readonly hold?: string; readonly ended?: string; readonly counted?: string } | null;
}

/** A complaint, with an example of it. */
export type Complain = (what: string, example: unknown) => void;

export interface Counted {
  readonly complete: number;
  readonly failed: number;
  readonly refused: number;
  readonly left: number;
  readonly charged: number;
  readonly chargedNanoUsd: string;
  readonly extended: number;
  readonly cutForFunds: number;
  /** Requests without an answer: their clients left before, or their idle connection closed under them. */
  readonly unanswered: number;
}

const NANO_USD_PER_TOKEN_AT_1 = 1_000n;
const PAGE = 1_000;

/** The whole ledger of an account, oldest line first. */
export async function ledgerOf(house: House, name: string): Promise<LedgerLine[]> {
  const lines: LedgerLine[] = [];
  for (let after: number | null = 0; after !== null; ) {
    const page: { items: LedgerLine[]; next: number | null } = await house.admin(
      "GET",
      `/accounts/${name}/ledger?limit=${PAGE}&after=${after}`,
    );
    lines.push(...page.items);
    after = page.next;
  }
  return lines;
}

/** Compares the three, and counts. */
export function compareBooks(
  books: { readonly seen: readonly Seen[]; readonly log: readonly LogLine[]; readonly ledger: readonly LedgerLine[] },
  complain: Complain,
): Counted {
  const logged = loggedById(books.log, complain);
  const charges = chargesById(books.ledger, complain);
  const counted = { complete: 0, failed: 0, refused: 0, left: 0, unanswered: 0 };
  const known = new Set<string>();
  for (const seen of books.seen) {
    if (seen.requestId === undefined) {
      counted.unanswered++;
      if (seen.outcome !== "left" && !seen.reused) complain("no answer to a client that had not left", factsOf(seen));
      continue;
    }
    known.add(seen.requestId);
    const line = logged.get(seen.requestId);
    if (!line) complain("an answer without a log line", factsOf(seen));
    else counted[judge(seen, line, charges.get(seen.requestId), complain)]++;
  }
  compareLines(logged, charges, complain);
  const strangers = [...logged.keys()].filter((id) => !known.has(id)).length;
  if (strangers > counted.unanswered) complain("more requests in the log than clients asked", strangers);
  const lines = [...logged.values()];
  return {
    ...counted,
    charged: charges.size,
    chargedNanoUsd: String([...charges.values()].reduce((sum, { usd }) => sum + (parseUsd(usd) ?? 0n), 0n)),
    extended: lines.filter((line) => line.hold_extensions !== undefined).length,
    cutForFunds: lines.filter((line) => line.stream_end === "brake").length,
  };
}

function loggedById(log: readonly LogLine[], complain: Complain): Map<string, LogLine> {
  const logged = new Map<string, LogLine>();
  for (const line of log) {
    if (line.msg !== "request") continue;
    const id = String(line.request);
    if (logged.has(id)) complain("two log lines of one request", line);
    logged.set(id, line);
  }
  return logged;
}

function chargesById(ledger: readonly LedgerLine[], complain: Complain): Map<string, LedgerLine> {
  const charges = new Map<string, LedgerLine>();
  for (const line of ledger) {
    if (line.kind !== "usage") continue;
    if (charges.has(line.reference)) complain("charged twice", line);
    charges.set(line.reference, line);
  }
  return charges;
}

/** One answered request. @returns as what it counts. */
function judge(
  seen: Seen,
  line: LogLine,
  charge: LedgerLine | undefined,
  complain: Complain,
): "complete" | "failed" | "refused" | "left" {
  const { scenario, status, outcome, reading, tail } = seen;
  const facts = { ...factsOf(seen), line, charge };
  if (!scenario.statuses.includes(status)) complain("a status that is no answer to this", facts);
  if (line.status !== status) complain("log and client differ about the status", facts);
  if (!reading) {
    if (charge) complain("a refused request is charged", facts);
    return "refused";
  }
  if (reading.said && !charge) complain("an answer without a charge", facts);
  if (outcome === "left") return "left";
  if (outcome === "broken") complain("a connection that broke under a client", facts);
  else if (reading.ending === "open") complain("an answer without a proper end", { ...facts, tail });
  if (reading.ending !== "complete") return "failed";
  if (!charge) complain("a complete answer without a charge", facts);
  // A stream that lacks nothing but its usage is complete, and its bill an estimate.
  if (isWhole(line) && charge?.usage?.counted === "upstream") compareAmount(reading, charge, facts, complain);
  return "complete";
}

/** Whether the upstream's own count is the bill. */
function isWhole(line: LogLine): boolean {
  return line.stream_end === undefined || line.stream_end === "complete";
}

function compareAmount({ used }: Reading, charge: LedgerLine | undefined, facts: object, complain: Complain): void {
  const [input, output] = [used?.input ?? -1, used?.output ?? -1];
  if (input < 0 || output < 0) {
    complain("a complete answer without its usage", facts);
    return;
  }
  const expected = (BigInt(input) * PRICE.input + BigInt(output) * PRICE.output) * NANO_USD_PER_TOKEN_AT_1;
  if (charge && parseUsd(charge.usd) !== expected)
    complain("another amount than the answer's usage costs", { ...facts, used });
}

/** Compares log and ledger, regardless of what clients saw. */
function compareLines(logged: Map<string, LogLine>, charges: Map<string, LedgerLine>, complain: Complain): void {
  for (const [id, charge] of charges) {
    const line = logged.get(id);
    const amount = parseUsd(charge.usd);
    if (!line) complain("a charge without a log line", charge);
    else if (line.charged_nano_usd !== String(amount))
      complain("log and ledger differ about a charge", { line, charge });
    const bounded = charge.usage?.ended !== "complete" || charge.usage.counted !== "upstream";
    if (bounded && (amount === undefined || amount > BigInt(charge.usage?.hold ?? 0))) {
      complain("a cut answer costs more than was held", charge);
    }
  }
  for (const [id, line] of logged) {
    if (line.charged_nano_usd !== undefined && line.charged_nano_usd !== "0" && !charges.has(id)) {
      complain("a charge that is not in the ledger", line);
    }
  }
}

function factsOf({ scenario, requestId, status, outcome, error, reused }: Seen): object {
  const { kind, protocol, stream } = scenario;
  return { kind, protocol, stream, requestId, status, outcome, error, reused };
}
