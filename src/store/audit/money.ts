/** The account's own sums against those of its lines. */
import { formatUsd } from "../../values/money.ts";
import type { AccountCheck, Finding } from "./snapshot.ts";

/** `balance`: the balance equals what the lines leave in the account. */
const balance: AccountCheck = ({ figures, lines }) =>
  differing("balance", "balance", figures.account.balance, lines.balance);

/** `spent`: everything ever charged to the balance. */
const spent: AccountCheck = ({ figures, lines }) => differing("spent", "sum spent", figures.account.spent, lines.spent);

/** `topped_up`: everything ever topped up or adjusted. */
const toppedUp: AccountCheck = ({ figures, lines }) =>
  differing("topped_up", "sum topped up", figures.account.topped, lines.topped);

/** `line_count`: the last existing line is the last one counted. */
const lineCount: AccountCheck = ({ figures: { seq, lastLine } }) => {
  const what = `${seq} lines were written, but the last existing line is line ${lastLine}.`;
  return seq === lastLine ? [] : [{ check: "line_count", line: undefined, what }];
};

/** `held_range`: the held amount is within the balance. */
const heldRange: AccountCheck = ({ figures: { account } }) => {
  if (account.held >= 0n && account.held <= account.balance) return [];
  const what = `The balance is ${formatUsd(account.balance)} USD, but the held amount is ${formatUsd(account.held)}.`;
  return [{ check: "held_range", line: undefined, what }];
};

function differing(check: string, name: string, kept: bigint, sum: bigint): Finding[] {
  if (kept === sum) return [];
  const what = `The ${name} is ${formatUsd(kept)} USD; the lines sum up to ${formatUsd(sum)}.`;
  return [{ check, line: undefined, what }];
}

export const moneyChecks: readonly AccountCheck[] = [lineCount, balance, spent, toppedUp, heldRange];
