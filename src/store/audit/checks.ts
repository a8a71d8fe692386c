/**
 * Every check of an account, in the order in which its findings are told. A further check is a function over a snapshot
 * (`snapshot.ts`) in a file of its own and a place in this list; what it needs to see is read by `store/figures.ts` and put
 * into the portions by `store/ledger-audit.ts`. What is wrong with single lines is found by `store/ledger-walk.ts`.
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
