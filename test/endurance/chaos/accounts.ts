/**
 * The accounts of a chaos run and the operator's work on them: funds that run out and are topped up repeatedly, and
 * reads of every account's balance.
 */

import { admin, nano, newKey } from "../../e2e/money/shared/rig.ts";
import type { GatewayProcess } from "../../rig/gateway.ts";
import type { Fleet } from "./fleet.ts";
import { lasting, type Random } from "./stores/store.ts";

export interface ChaosAccount {
  readonly name: string;
  readonly group: "money" | "double-money" | "cards";
  readonly key: string;
  /** Whether its funds run out repeatedly. */
  readonly poor: boolean;
}

interface Kind {
  readonly count: number;
  readonly group: ChaosAccount["group"];
  /** The funds at the start, US dollars; none for cards. */
  readonly usd: string;
  readonly poor?: boolean;
}

const KINDS: readonly Kind[] = [
  { count: 8, group: "money", usd: "100" },
  { count: 2, group: "double-money", usd: "100" },
  { count: 6, group: "money", usd: "0.02", poor: true },
  { count: 4, group: "cards", usd: "0" },
];
/** Each pays five dollars, which no run uses up. The second one exists so that it can be lost and found again. */
const CARDS_EACH = 2;
const TOPUP_USD = "0.01";
/** How often the first writes are attempted. */
const WRITE_TRIES = 20;
const TOPUP_EVERY_MS = 150;
const LOOK_EVERY_MS = 200;

/** Creates the accounts as an operator does. */
export async function openAccounts(gateway: GatewayProcess): Promise<ChaosAccount[]> {
  const accounts: ChaosAccount[] = [];
  for (const kind of KINDS) {
    for (let i = 0; i < kind.count; i++) accounts.push(await open(gateway, `account-${accounts.length + 1}`, kind));
  }
  return accounts;
}

async function open(gateway: GatewayProcess, name: string, kind: Kind): Promise<ChaosAccount> {
  const { group, usd, poor = false } = kind;
  await again(() => admin(gateway, "POST", "/accounts", { name }));
  if (group !== "cards") await again(() => admin(gateway, "POST", `/accounts/${name}/topups`, { usd, id: "funds" }));
  else await giveCards(gateway, name);
  const { key } = await again(() => newKey(gateway, name, group));
  return { name, group, key, poor };
}

async function giveCards(gateway: GatewayProcess, name: string): Promise<void> {
  const wanted = { card: "day", count: CARDS_EACH };
  const { items } = await again(() => admin<{ items: { code: string }[] }>(gateway, "POST", "/codes", wanted));
  for (const { code } of items) await again(() => admin(gateway, "POST", `/accounts/${name}/redemptions`, { code }));
}

/** Repeats a write that no replica has confirmed in time, as its answer asks. Additional keys and codes do no harm. */
async function again<T>(write: () => Promise<T>): Promise<T> {
  for (let left = WRITE_TRIES; ; left--) {
    try {
      return await write();
    } catch (error) {
      if (left <= 1 || !String(error).includes(": 503 ")) throw error;
    }
  }
}

/** A payment that the admin API has acknowledged. */
export interface Payment {
  readonly account: string;
  readonly id: string;
  readonly amount: bigint;
}

/** Tops up poor accounts until it is stopped. Each payment is sent again, to any gateway, until it is acknowledged. */
export async function topUp(
  fleet: Fleet,
  accounts: readonly ChaosAccount[],
  random: Random,
  stopped: { readonly now: boolean },
): Promise<Payment[]> {
  const poor = accounts.filter((account) => account.poor);
  const payments: Payment[] = [];
  for (let number = 1; !stopped.now; number++) {
    const account = (poor[number % poor.length] as ChaosAccount).name;
    const id = `payment-${number}`;
    for (let taken = false; !taken && !stopped.now; ) {
      const gateway = fleet.at(Math.floor(random() * fleet.size));
      taken = gateway !== undefined && (await pay(gateway, account, id));
      if (!taken) await lasting(TOPUP_EVERY_MS);
      else payments.push({ account, id, amount: nano(TOPUP_USD) });
    }
    await lasting(TOPUP_EVERY_MS);
  }
  return payments;
}

/** Returns false if the outcome is unknown. A payment that is sent again with the same id counts once. */
async function pay(gateway: GatewayProcess, account: string, id: string): Promise<boolean> {
  return admin(gateway, "POST", `/accounts/${account}/topups`, { usd: TOPUP_USD, id }).then(
    () => true,
    () => false,
  );
}

interface Shown {
  readonly name: string;
  readonly balance_usd: string;
  readonly held_usd: string;
}

/** Every account's balance and holds, as one gateway reads them. */
export async function fundsOfAll(gateway: GatewayProcess): Promise<{ name: string; balance: bigint; held: bigint }[]> {
  const { items } = await admin<{ items: Shown[] }>(gateway, "GET", "/accounts?limit=200");
  return items.map(({ name, balance_usd, held_usd }) => ({ name, balance: nano(balance_usd), held: nano(held_usd) }));
}

/**
 * Reads every account until it is stopped. @returns the number of balances read, and the lowest available amount of
 * each account.
 */
export async function watchFunds(
  fleet: Fleet,
  random: Random,
  stopped: { readonly now: boolean },
): Promise<{ looks: number; lowest: Map<string, bigint> }> {
  const lowest = new Map<string, bigint>();
  let looks = 0;
  while (!stopped.now) {
    const gateway = fleet.at(Math.floor(random() * fleet.size));
    const funds = gateway ? await fundsOfAll(gateway).catch(() => []) : [];
    for (const { name, balance, held } of funds) {
      looks++;
      const least = balance - held < balance ? balance - held : balance;
      if (least < (lowest.get(name) ?? least + 1n)) lowest.set(name, least);
    }
    await lasting(LOOK_EVERY_MS);
  }
  return { looks, lowest };
}
