/**
 * Every check of an account, in the order in which findings are reported. To add a check, write a function over a
 * snapshot (`snapshot.ts`) in a file of its own and add it to this list. `store/redis/figures.ts` and
 * `store/embedded/figures.ts` read what it needs, and `store/ledger/audit.ts` puts that into the portions.
 * `store/ledger/walk.ts` finds what is wrong with single lines.
 */
import { cardChecks } from "./cards.ts";
import { dayChecks } from "./days.ts";
import { halfDoneChecks } from "./half-done.ts";
import { holdChecks } from "./holds.ts";
import { moneyChecks } from "./money.ts";
import { payment, paymentCount, settledMark } from "./named.ts";
import { recordChecks } from "./records.ts";
import type { AccountCheck, NameCheck } from "./snapshot.ts";

export const ACCOUNT_CHECKS: readonly AccountCheck[] = [
  ...halfDoneChecks,
  ...moneyChecks,
  ...recordChecks,
  ...cardChecks,
  ...holdChecks,
  ...dayChecks,
  paymentCount,
];

export const NAME_CHECKS: readonly NameCheck[] = [settledMark, payment];
