import type { FindingKind } from "../judge/findings.ts";

/** Which invariant of docs/failure-model.md a finding of the judge breaks. */
export const INVARIANTS: Readonly<Partial<Record<FindingKind, number>>> = {
  out_of_balance: 1,
  moved_to_itself: 2,
  accounts_missing: 4,
  missing: 4,
  double: 4,
  wrong_amount: 4,
  wrong_account: 4,
  wrong_absorbed: 4,
  not_its_worth: 4,
  above_hold: 4,
  charged_refusals: 4,
  dead_letters: 4,
  not_attempted: 5,
  strangers: 5,
  below_zero: 7,
  held: 9,
  payments_missing: 10,
  payments_wrong: 10,
  payments_double: 10,
  codes_double: 11,
  wrong_source: 12,
};
