/** All kinds of findings of the judge. Each has the same name in all runs. */

/** The kinds of findings and their meanings. */
export const FINDINGS = {
  missing: "a request that owes a charge has none",
  double: "a charge beyond the first one of a request",
  wrong_amount: "another charge than the client's answer costs",
  wrong_account: "a charge to another account than the one that asked",
  wrong_source: "a balance paid where a card was to pay, or the other way round",
  wrong_absorbed: "another amount absorbed than was promised",
  wrong_price: "a price that was not in force between the request and its answer",
  not_its_worth: "a charge that is not what its own counts and prices give",
  above_hold: "an estimate, or a cut answer, that costs more than was held",
  charged_refusals: "a refused request that cost something",
  not_attempted: "a charge for a request that no upstream was asked for",
  strangers: "a ledger line of a request that nobody sent",
  dead_letters: "a charge that the store never took",
  payments_missing: "an acknowledged payment that is not in the ledger",
  payments_wrong: "a payment that counts another amount",
  payments_double: "a payment that is in the ledger twice",
  codes_double: "a code that is in the ledger twice",
  below_zero: "a balance, or a balance less its holds, below zero",
  out_of_balance: "an account whose figures do not follow from its lines",
  moved_to_itself: "a line that debits and credits the same account",
  accounts_missing: "an acknowledged account that is not there",
  held: "something is still held when all is over",
  left_over: "something is not at rest when all is over",
  log_missing: "an answer, or a charge, without a line in the log",
  log_double: "two lines in the log for one request",
  log_differs: "log and client, or log and ledger, say different things",
  log_strangers: "more requests in the log than clients sent",
  unexpected: "an answer, or the want of one, that nothing explains",
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
