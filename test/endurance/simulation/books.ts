/**
 * What must be true of an account after every single operation: docs/failure-model.md invariants 1, 3, 7 and 8, and
 * that no request, payment or code is in the ledger twice (4, 10, 11). Reads only the lines that are new.
 */
import type { Row } from "../../../src/store/embedded/database.ts";
import { holdAmount, holdEntitlement } from "../../../src/store/hold-record.ts";
import { accountId } from "../../../src/store/names.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import type { Replica } from "./replica.ts";

/** A statement about one account that does not hold; `invariant` is its number in the table of invariants. */
export interface Violation {
  readonly invariant: number;
  readonly what: string;
}

interface Sums {
  seq: number;
  balance: bigint;
  spent: bigint;
  topped: bigint;
  readonly once: Set<string>;
}

export class Books {
  readonly #replica: Replica;
  readonly #sums = new Map<AccountTag, Sums>();

  constructor(replica: Replica) {
    this.#replica = replica;
  }

  /** The store has lost the end of its history: lines that were read may be gone. */
  reset(): void {
    this.#sums.clear();
  }

  /** Everything that is wrong with an account now; nothing when there is none. */
  check(tag: AccountTag): Violation[] {
    const { db } = this.#replica.context;
    const account = db.get("SELECT bal, spent, topped, seq FROM accounts WHERE tag = ?", tag);
    if (!account) return [];
    const found: Violation[] = [];
    const wrong = (invariant: number, what: string) => found.push({ invariant, what: `account ${tag}: ${what}` });
    const sums = this.#sums.get(tag) ?? { seq: 0, balance: 0n, spent: 0n, topped: 0n, once: new Set<string>() };
    this.#sums.set(tag, sums);
    for (const line of db.all("SELECT * FROM ledger WHERE tag = ? AND seq > ? ORDER BY seq", tag, sums.seq)) {
      addLine(line, accountId(tag), sums, wrong);
    }
    compare(account, sums, wrong);
    this.#checkHolds(tag, account.bal as bigint, wrong);
    return found;
  }

  #checkHolds(tag: AccountTag, balance: bigint, wrong: (invariant: number, what: string) => void): void {
    const live = this.#replica.context.live(tag);
    let held = 0n;
    let count = 0;
    for (const record of live.holds.values()) if (holdEntitlement(record) === undefined) held += holdAmount(record);
    for (const inFlight of live.inFlightByScope.values()) count += inFlight;
    if (held !== live.held) wrong(3, `${live.held} is held, the holds sum up to ${held}`);
    if (count !== live.holds.size) wrong(3, `${count} requests are in flight, ${live.holds.size} have a hold`);
    if (balance < 0n || balance < held) wrong(7, `a balance of ${balance} with ${held} held`);
    for (const amount of [balance, held]) {
      if (amount > BigInt(Number.MAX_SAFE_INTEGER)) wrong(8, `an amount of ${amount}`);
    }
  }
}

function addLine(line: Row, account: string, sums: Sums, wrong: (invariant: number, what: string) => void): void {
  const amount = line.amount as bigint;
  if (Number(line.seq) !== sums.seq + 1) wrong(1, `line ${line.seq} follows line ${sums.seq}`);
  sums.seq = Number(line.seq);
  if (line.debit === line.credit) wrong(2, `line ${line.seq} moves money from ${line.debit} to itself`);
  if (line.credit === account) sums.balance += amount;
  if (line.debit === account) sums.balance -= amount;
  if (line.kind === "usage" && line.debit === account) sums.spent += amount;
  if (line.kind === "topup" || line.kind === "adjust") sums.topped += line.credit === account ? amount : -amount;
  if (line.bal !== sums.balance) wrong(1, `line ${line.seq} says ${line.bal}, the lines sum up to ${sums.balance}`);
  if (line.kind === "absorbed") return;
  const invariant = line.kind === "usage" ? 4 : line.kind === "card" ? 11 : 10;
  const name = `${line.kind === "adjust" ? "topup" : line.kind} ${line.ref}`;
  if (sums.once.has(name)) wrong(invariant, `${name} is in the ledger twice`);
  sums.once.add(name);
}

function compare(account: Row, sums: Sums, wrong: (invariant: number, what: string) => void): void {
  if (Number(account.seq) !== sums.seq) wrong(1, `${account.seq} lines were counted, ${sums.seq} are there`);
  for (const [name, kept] of [
    ["balance", account.bal],
    ["spent", account.spent],
    ["topped", account.topped],
  ] as const) {
    if (kept !== sums[name]) wrong(1, `${name} is ${kept}, the lines sum up to ${sums[name]}`);
  }
}
