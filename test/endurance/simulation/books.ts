/**
 * Checks what must be true of an account after every operation: docs/failure-model.md invariants 1, 3, 7 and 8, and
 * that no request, payment or code is in the ledger twice (4, 10, 11). Reads only the new lines.
 */
import type { Row } from "../../../src/store/embedded/database/database.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { Chain } from "../judge/chain.ts";
import type { Line } from "../judge/line.ts";
import { INVARIANTS } from "./invariants.ts";
import type { Replica } from "./replica.ts";

/** A violated rule of one account. `invariant` is its number in the table of invariants. */
export interface Violation {
  readonly invariant: number;
  readonly what: string;
}

export class Books {
  readonly #replica: Replica;
  readonly #chains = new Map<AccountTag, Chain>();

  constructor(replica: Replica) {
    this.#replica = replica;
  }

  /** Forgets what was read, because the store has lost the end of its history. */
  reset(): void {
    this.#chains.clear();
  }

  /** All violations of an account now; empty if there are none. */
  check(tag: AccountTag): Violation[] {
    const { db } = this.#replica.context;
    const account = db.get("SELECT bal, spent, topped, seq FROM accounts WHERE tag = ?", tag);
    if (!account) return [];
    const found: Violation[] = [];
    const wrong = (invariant: number, what: string) => found.push({ invariant, what: `account ${tag}: ${what}` });
    const chain = this.#chains.get(tag) ?? new Chain(tag);
    this.#chains.set(tag, chain);
    for (const row of db.all("SELECT * FROM ledger WHERE tag = ? AND seq > ? ORDER BY seq", tag, chain.seq)) {
      chain.add(lineOfRow(row), (kind, what) => found.push({ invariant: INVARIANTS[kind] ?? 0, what }));
    }
    compare(account, chain, wrong);
    this.#checkHolds(tag, account.bal as bigint, wrong);
    return found;
  }

  #checkHolds(tag: AccountTag, balance: bigint, wrong: (invariant: number, what: string) => void): void {
    const live = this.#replica.context.live(tag);
    let held = 0n;
    let count = 0;
    for (const { answer } of live.holds.values()) if (answer.entitlement === undefined) held += answer.hold;
    for (const inFlight of live.inFlightByScope.values()) count += inFlight;
    if (held !== live.held) wrong(3, `${live.held} is held, the holds sum up to ${held}`);
    if (count !== live.holds.size) wrong(3, `${count} requests are in flight, ${live.holds.size} have a hold`);
    if (balance < 0n || balance < held) wrong(7, `a balance of ${balance} with ${held} held`);
    for (const amount of [balance, held]) {
      if (amount > BigInt(Number.MAX_SAFE_INTEGER)) wrong(8, `an amount of ${amount}`);
    }
  }
}

function lineOfRow({ seq, kind, debit, credit, amount, bal, ref }: Row): Line {
  const [from, to] = [String(debit), String(credit)];
  const sums = { amount: amount as bigint, balance: bal as bigint };
  return {
    seq: Number(seq),
    kind: String(kind),
    debit: from,
    credit: to,
    ...sums,
    reference: String(ref),
    bill: undefined,
  };
}

function compare(account: Row, chain: Chain, wrong: (invariant: number, what: string) => void): void {
  if (Number(account.seq) !== chain.seq) wrong(1, `${account.seq} lines were counted, ${chain.seq} are there`);
  for (const [name, kept] of [
    ["balance", account.bal],
    ["spent", account.spent],
    ["topped", account.topped],
  ] as const) {
    if (kept !== chain[name]) wrong(1, `${name} is ${kept}, the lines sum up to ${chain[name]}`);
  }
}
