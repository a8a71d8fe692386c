/** Compares the answers that clients and operators got with the ledgers. */
import { execFile } from "node:child_process";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ADMIN_TOKEN, admin, ledgerOf, nano, type ShownLine } from "../../e2e/money/shared/house.ts";
import type { GatewayProcess } from "../../rig/gateway.ts";
import type { ChaosAccount, Payment } from "./accounts.ts";
import type { Truth } from "./traffic.ts";

const MAIN = fileURLToPath(new URL("../../../src/main.ts", import.meta.url));
const OVER_HOLD = "absorbed:over_hold";
/** Words for a person, of each kind of fault no more than these. */
const DETAILS_MAX = 20;

/** What is wrong: all of it zero, or something is lost, doubled or invented. */
export interface Wrongs {
  /** Answered requests without a charge. */
  missing: number;
  /** Charges beyond the first one of a request. */
  double: number;
  /** Answered requests whose charge, with what was absorbed above their hold, is not their usage at its prices. */
  wrong_amount: number;
  /** Refused requests that cost something. */
  charged_refusals: number;
  /** Acknowledged payments that are not in the ledger once and whole. */
  payments_missing: number;
  payments_double: number;
  /** Balances, or balances less holds, below zero: in the ledger, and as seen during the run. */
  below_zero: number;
}

export interface Judgement {
  readonly wrongs: Wrongs;
  readonly usageLines: number;
  /** Nano-dollars that no client paid because a failover had lost the hold. */
  readonly absorbed: bigint;
  readonly details: readonly string[];
}

/** Reads every ledger. */
export async function judge(
  gateway: GatewayProcess,
  accounts: readonly ChaosAccount[],
  truth: Truth,
  payments: readonly Payment[],
): Promise<Judgement> {
  const sums = new Sums();
  for (const { name } of accounts) {
    for (const line of await ledgerOf(gateway, name)) sums.add(name, line);
  }
  for (const [id, { account, cost }] of truth.answered) sums.expectCharge(id, account, cost);
  for (const id of truth.refused) sums.expectNothing(id);
  for (const payment of payments) sums.expectPayment(payment);
  return sums;
}

class Sums implements Judgement {
  readonly wrongs: Wrongs = {
    missing: 0,
    double: 0,
    wrong_amount: 0,
    charged_refusals: 0,
    payments_missing: 0,
    payments_double: 0,
    below_zero: 0,
  };
  usageLines = 0;
  absorbed = 0n;
  readonly details: string[] = [];
  readonly #charges = new Map<string, { account: string; charged: bigint; absorbed: bigint }>();
  readonly #payments = new Map<string, bigint>();

  add(account: string, line: ShownLine): void {
    const { kind, reference, usd, balance_usd, debit } = line;
    if (nano(balance_usd) < 0n) this.#wrong("below_zero", `${account}: ${JSON.stringify(line)}`);
    if (kind === "usage") this.#usage(account, reference, nano(usd));
    if (debit === OVER_HOLD) this.#overHold(reference, nano(usd));
    if (kind !== "topup") return;
    const id = `${account} ${reference}`;
    if (this.#payments.has(id)) this.#wrong("payments_double", id);
    this.#payments.set(id, nano(usd));
  }

  expectCharge(id: string, account: string, cost: bigint): void {
    const found = this.#charges.get(id);
    const owed = found && found.charged + found.absorbed;
    if (!found) this.#wrong("missing", `${id} of ${account}, ${cost}`);
    else if (owed !== cost || found.account !== account) {
      this.#wrong("wrong_amount", `${id} of ${account}: ${cost} were used, ${owed} charged to ${found.account}`);
    }
  }

  expectNothing(id: string): void {
    if (this.#charges.has(id)) this.#wrong("charged_refusals", id);
  }

  expectPayment({ account, id, amount }: Payment): void {
    if (this.#payments.get(`${account} ${id}`) !== amount) this.#wrong("payments_missing", `${account} ${id}`);
  }

  #usage(account: string, id: string, charged: bigint): void {
    this.usageLines++;
    if (this.#charges.has(id)) this.#wrong("double", `${id} of ${account}`);
    else this.#charges.set(id, { account, charged, absorbed: 0n });
  }

  #overHold(id: string, absorbed: bigint): void {
    const charge = this.#charges.get(id);
    if (charge) charge.absorbed += absorbed;
    this.absorbed += absorbed;
  }

  #wrong(what: keyof Wrongs, detail: string): void {
    this.wrongs[what]++;
    if (this.wrongs[what] <= DETAILS_MAX) this.details.push(`${what}: ${detail}`);
  }
}

interface ShownFunds {
  readonly held_usd: string;
  readonly entitlements: readonly { readonly held_usd: string }[];
}

/** Accounts of which something is held, by balance or card. */
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

/** What the journals of these gateways still owe, by their metrics. */
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

/** `tollgate ledger verify`, as an operator runs it. @returns accounts that do not balance, and what it says of them. */
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
