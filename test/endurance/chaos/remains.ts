/**
 * What a chaos run leaves: ledgers, holds, journals, and the result of the gateway's own audit. The judge compares
 * them.
 */
import { execFile } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ADMIN_TOKEN, admin, ledgerOf, nano } from "../../e2e/money/shared/rig.ts";
import type { GatewayProcess } from "../../rig/gateway.ts";
import type { Finding } from "../judge/findings.ts";
import { type AccountAtEnd, exactly, judge, NOTHING, type SeenRequest, UNKNOWN } from "../judge/judge.ts";
import { type Line, shownLineOf } from "../judge/line.ts";
import type { ChaosAccount, Payment } from "./accounts.ts";
import type { Truth } from "./traffic.ts";

const MAIN = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));

export interface Remains {
  readonly accounts: readonly ChaosAccount[];
  readonly truth: Truth;
  readonly payments: readonly Payment[];
  /** The lowest available amount of each account that was read during the run. */
  readonly lowest: ReadonlyMap<string, bigint>;
  readonly holding: readonly ChaosAccount[];
  readonly leftOver: Readonly<Record<string, number>>;
}

/** Reads every ledger and has it judged. */
export async function judgeRemains(gateway: GatewayProcess, remains: Remains): Promise<Judgement> {
  const { truth, payments, lowest, holding, leftOver } = remains;
  const accounts: (AccountAtEnd & { readonly lines: readonly Line[] })[] = [];
  for (const { name } of remains.accounts) {
    const lines = (await ledgerOf(gateway, name)).map(shownLineOf);
    const held = holding.some((one) => one.name === name) ? "something is still held" : "";
    accounts.push({ name, lines, held, lowest: lowest.get(name) });
  }
  const findings = judge({
    requests: requestsOf(truth, remains.accounts),
    // A request that broke off before its response began may have been charged, at most once.
    unnamed: truth.begun - truth.answered.size - truth.refused.size - truth.unfinished.size,
    payments: payments.map((payment) => ({ ...payment, isPromised: true })),
    accounts,
    leftOver,
  });
  for (const what of truth.unexpected) findings.push({ kind: "unexpected", what });
  const absorbed = accounts.flatMap(({ lines }) => lines.filter(({ debit }) => debit === "absorbed:over_hold"));
  return { findings, absorbed: absorbed.reduce((sum, { amount }) => sum + amount, 0n) };
}

export interface Judgement {
  readonly findings: Finding[];
  /** Nano-dollars that no client paid because a failover had lost the hold. */
  readonly absorbed: bigint;
}

function* requestsOf(
  { answered, refused, unfinished }: Truth,
  accounts: readonly ChaosAccount[],
): Generator<SeenRequest> {
  const payers = new Map(accounts.map(({ name, group }) => [name, group === "cards" ? "card" : "balance"] as const));
  for (const [id, { account, cost }] of answered) {
    yield { id, account, owed: exactly(cost), paidBy: payers.get(account) };
  }
  for (const [id, account] of unfinished) yield { id, account, owed: UNKNOWN, paidBy: payers.get(account) };
  for (const id of refused) yield { id, owed: NOTHING };
}

interface ShownFunds {
  readonly held_usd: string;
  readonly entitlements: readonly { readonly held_usd: string }[];
}

/** The accounts with holds, from the balance or a card. */
export async function holding(gateway: GatewayProcess, accounts: readonly ChaosAccount[]): Promise<ChaosAccount[]> {
  const found: ChaosAccount[] = [];
  for (const account of accounts) {
    const shown = await admin<ShownFunds>(gateway, "GET", `/accounts/${account.name}`);
    if ([shown, ...shown.entitlements].some(({ held_usd }) => nano(held_usd) !== 0n)) found.push(account);
  }
  return found;
}

export interface Journals {
  readonly unsettled: number;
  readonly deadLetters: number;
}

/** The unsettled charges in the journals of these gateways, by their metrics. */
export async function journalsOf(gateways: readonly GatewayProcess[]): Promise<Journals> {
  const pages = await Promise.all(
    gateways.map(async ({ adminUrl }) => {
      const reply = await fetch(`${adminUrl}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } });
      if (!reply.ok) throw new Error(`metrics: ${reply.status}`);
      return reply.text();
    }),
  );
  const sumOf = (metric: string): number =>
    pages.reduce((sum, page) => sum + Number(new RegExp(`^tollgate_${metric} (\\S+)$`, "m").exec(page)?.[1]), 0);
  return { unsettled: sumOf("journal_unsettled") + sumOf("unrecorded_charges"), deadLetters: sumOf("dead_letters") };
}

/**
 * Runs `tollgate ledger verify` as an operator does. @returns the number of accounts that do not balance, and the
 * output for them.
 */
export async function verifyLedgers({ adminUrl }: GatewayProcess): Promise<{ unbalanced: number; words: string }> {
  const env = { ...process.env, TOLLGATE_ADMIN_URL: adminUrl, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const run = promisify(execFile)(process.execPath, [MAIN, "ledger", "verify", "--json"], { env, maxBuffer: 2 ** 26 });
  const { stdout, stderr } = await run.catch((error: { stdout?: string; stderr?: string }) => ({
    stdout: error.stdout ?? "",
    stderr: error.stderr ?? String(error),
  }));
  const { unbalanced } = (stdout === "" ? {} : JSON.parse(stdout)) as { unbalanced?: number };
  return { unbalanced: unbalanced ?? -1, words: stderr };
}
