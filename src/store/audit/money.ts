/** The account's own sums against those of its lines. */
import { formatUsd } from "../../values/money.ts";
import type { AccountCheck, Finding } from "./snapshot.ts";

/** `balance`: what is in the account is what its lines leave in it. */
const balance: AccountCheck = ({ figures, lines }) =>
  differing("balance", "balance", figures.account.balance, lines.balance);

/** `spent`: everything ever charged to the balance. */
const spent: AccountCheck = ({ figures, lines }) => differing("spent", "sum spent", figures.account.spent, lines.spent);

/** `topped_up`: everything ever topped up or adjusted. */
const toppedUp: AccountCheck = ({ figures, lines }) =>
  differing("topped_up", "sum topped up", figures.account.topped, lines.topped);

/** `line_count`: the last line is the one that was counted last. */
const lineCount: AccountCheck = ({ figures: { seq, lastLine } }) => {
  const what = `${seq} lines were written; the last one that is there is line ${lastLine}.`;
  return seq === lastLine ? [] : [{ check: "line_count", line: undefined, what }];
};

/** `held_range`: holds are set aside from what there is. */
const heldRange: AccountCheck = ({ figures: { account } }) => {
  if (account.held >= 0n && account.held <= account.balance) return [];
  const what = `Of a balance of ${formatUsd(account.balance)} USD ${formatUsd(account.held)} are held.`;
  return [{ check: "held_range", line: undefined, what }];
};

function differing(check: string, name: string, kept: bigint, sum: bigint): Finding[] {
  if (kept === sum) return [];
  const what = `The ${name} is ${formatUsd(kept)} USD; the lines sum up to ${formatUsd(sum)}.`;
  return [{ check, line: undefined, what }];
}

export const moneyChecks: readonly AccountCheck[] = [lineCount, balance, spent, toppedUp, heldRange];
