/** All kinds of findings of the judge. Each has the same name in all runs. */

/** The kinds of findings and their meanings. */
export const FINDINGS = {
  missing: "a request that owes a charge has none",
  double: "a charge beyond the first one of a request",
  wrong_amount: "a charge that differs from the cost of the client's answer",
  wrong_account: "a charge to another account than the one that asked",
  wrong_source: "a charge to the balance that a card should pay, or the other way round",
  wrong_absorbed: "an absorbed amount that differs from the promised one",
  wrong_price: "a price that was not in force between the request and its answer",
  not_its_worth: "a charge that does not follow from its own counts and prices",
  above_hold: "an estimate, or a cut answer, that costs more than was held",
  charged_refusals: "a refused request that cost something",
  not_attempted: "a charge for a request that no upstream was asked for",
  strangers: "a ledger line of a request that was not sent",
  dead_letters: "a charge that the store never accepted",
  payments_missing: "an acknowledged payment that is not in the ledger",
  payments_wrong: "a payment with a wrong amount",
  payments_double: "a payment that is in the ledger twice",
  codes_double: "a code that is in the ledger twice",
  below_zero: "a balance, or a balance less its holds, below zero",
  out_of_balance: "an account whose figures do not follow from its lines",
  moved_to_itself: "a line that debits and credits the same account",
  accounts_missing: "an acknowledged account that does not exist",
  held: "a hold that remains at the end",
  left_over: "unfinished work that remains at the end",
  log_missing: "an answer, or a charge, without a line in the log",
  log_double: "two lines in the log for one request",
  log_differs: "a difference between log and client, or log and ledger",
  log_strangers: "more requests in the log than clients sent",
  unexpected: "an answer, or a missing answer, that nothing explains",
} as const;

export type FindingKind = keyof typeof FINDINGS;

export interface Finding {
  readonly kind: FindingKind;
  /** A description for people. */
  readonly what: string;
}

/** Called with each finding. */
export type Report = (kind: FindingKind, what: string) => void;

/** The number of findings of each kind. */
export function countsOf(findings: readonly Finding[]): Record<FindingKind, number> {
  const counts = Object.fromEntries(Object.keys(FINDINGS).map((kind) => [kind, 0])) as Record<FindingKind, number>;
  for (const { kind } of findings) counts[kind]++;
  return counts;
}

/** Descriptions for people, of each kind at most `most`. */
export function wordsOf(findings: readonly Finding[], most = 20): string[] {
  const byKind = Map.groupBy(findings, ({ kind }) => kind);
  return [...byKind].flatMap(([kind, some]) => some.slice(0, most).map(({ what }) => `${kind}: ${what}`));
}
