/** Reads the lines of one account in order: each must follow from those before it, and nothing may be there twice. */
import type { Report } from "./findings.ts";
import type { Line } from "./line.ts";

const OWN = /^acct_/;

export class Chain {
  readonly #account: string;
  readonly #once = new Set<string>();
  /** The account's name in the double entries, taken from its first line. */
  #id: string | undefined;
  /** The number of the last line, and the sum of all lines. */
  seq = 0;
  balance = 0n;
  spent = 0n;
  topped = 0n;

  /** @param account the account's name in findings. */
  constructor(account: string) {
    this.#account = account;
  }

  add(line: Line, report: Report): void {
    const { seq, kind, debit, credit, amount, balance, reference } = line;
    const wrong = (what: Parameters<Report>[0], words: string) => report(what, `account ${this.#account}: ${words}`);
    if (seq !== this.seq + 1) wrong("out_of_balance", `line ${seq} follows line ${this.seq}`);
    this.seq = seq;
    if (debit === credit) wrong("moved_to_itself", `line ${seq} moves money from ${debit} to itself`);
    for (const side of [debit, credit]) {
      if (!OWN.test(side)) continue;
      this.#id ??= side;
      if (side !== this.#id) wrong("out_of_balance", `line ${seq} is about ${side}`);
    }
    const moved = (credit === this.#id ? amount : 0n) - (debit === this.#id ? amount : 0n);
    this.balance += moved;
    if (kind === "usage") this.spent -= moved;
    if (kind === "topup" || kind === "adjust") this.topped += moved;
    if (balance !== this.balance) {
      wrong("out_of_balance", `line ${seq} says ${balance}, the lines sum up to ${this.balance}`);
    }
    if (balance < 0n) wrong("below_zero", `a balance of ${balance} after line ${seq}`);
    if (kind === "absorbed") return;
    const name = `${kind === "adjust" ? "topup" : kind} ${reference}`;
    if (this.#once.has(name)) wrong(DOUBLE[kind] ?? "payments_double", `${name} is in the ledger twice`);
    this.#once.add(name);
  }
}

const DOUBLE = { usage: "double", card: "codes_double" } as Readonly<Record<string, "double" | "codes_double">>;
