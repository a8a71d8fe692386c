/** A run of requests through a journal, with a separate record of what the journal has promised. */
import { setImmediate as turn } from "node:timers/promises";
import type { Leftover } from "../../../src/settle/journal/startup.ts";
import type { Journal } from "../../../src/settle/journal.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { askOf, idOf, voidOf } from "./rig.ts";

export const REQUESTS = 36;

/** What an outside observer knows of a run. */
export interface Truth {
  /** FINAL has resolved and no ACK was written. */
  readonly owed: Set<number>;
  readonly acked: Set<number>;
  /** FINAL was refused. */
  readonly refused: Set<number>;
  /** The amounts that each request was ever written with. */
  readonly written: Map<number, Set<bigint>>;
}

export function newTruth(): Truth {
  return { owed: new Set(), acked: new Set(), refused: new Set(), written: new Map() };
}

/** Request n: every third is never finished, and of the others every fifth is acknowledged. */
export async function run(journal: Journal, truth: Truth): Promise<void> {
  for (let number = 1; number <= REQUESTS; number += 3) {
    await Promise.all([number, number + 1, number + 2].map((one) => request(journal, truth, one)));
  }
}

async function request(journal: Journal, truth: Truth, number: number): Promise<void> {
  const amounts = new Set<bigint>([0n]);
  truth.written.set(number, amounts);
  journal.open({ voided: voidOf(number), hold: nanoUsd(1_000n) });
  await turn();
  if (number % 2 === 0) {
    amounts.add(7n);
    journal.checkpoint(askOf(number, 7));
  }
  if (number % 3 === 0) return;
  const ask = askOf(number);
  amounts.add(ask.amount);
  try {
    await journal.final(ask);
  } catch {
    truth.refused.add(number);
    return;
  }
  truth.owed.add(number);
  if (number % 5 !== 0) return;
  truth.owed.delete(number);
  truth.acked.add(number);
  journal.ack(ask.requestId, "settled");
}

/** Everything that a later process finds wrong compared with the truth; empty when nothing is lost and nothing invented. */
export function complaints(leftovers: readonly Leftover[], truth: Truth): string[] {
  const found: string[] = [];
  const finals = new Map(leftovers.filter(({ final }) => final).map(({ ask }) => [ask.requestId, ask.amount]));
  for (const number of truth.owed) {
    if (finals.get(idOf(number)) !== askOf(number).amount) found.push(`the charge of ${number} is lost`);
  }
  for (const { ask, final } of leftovers) {
    const number = Number.parseInt(ask.requestId, 16);
    if (!truth.written.get(number)?.has(ask.amount)) found.push(`${number} was never written with ${ask.amount}`);
    if (final && ask.amount !== askOf(number).amount) found.push(`${number} has a FINAL of ${ask.amount}`);
  }
  return found;
}

/** Requests that never reached their FINAL and are not found with what was last written to the journal. */
export function missingOrphans(leftovers: readonly Leftover[]): string[] {
  const orphans = new Map(leftovers.filter(({ final }) => !final).map(({ ask }) => [ask.requestId, ask.amount]));
  const missing: string[] = [];
  for (let number = 3; number <= REQUESTS; number += 3) {
    const expected = number % 2 === 0 ? 7n : 0n;
    const found = orphans.get(idOf(number));
    if (found !== expected) missing.push(`orphan ${number} is ${found}, not ${expected}`);
  }
  return missing;
}
