/**
 * A judge that finds nothing would pass every run. So each kind of error is put into correct books, and must be found
 * by its name.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { FINDINGS, type FindingKind } from "./findings.ts";
import { type AccountAtEnd, exactly, judge, type LoggedRequest, NOTHING, type Run, type SeenRequest } from "./judge.ts";
import type { Line } from "./line.ts";

const HOLD = 500n;
const COST = 120n;
const PRICE = 1_000n;
const BILL = { hold: HOLD, ended: "complete", counted: "upstream", inputPrice: PRICE, worth: COST };

/** An account that got 1000, sent one request for 120, got a card and was refused once. */
interface Books {
  topup: Line;
  charge: Line;
  more: Line[];
  account: AccountAtEnd;
  answered: SeenRequest;
  refused: SeenRequest;
  log: LoggedRequest[];
  run: Partial<Run>;
}

function rightBooks(): Books {
  const own = "acct_A";
  return {
    topup: line(1, { kind: "topup", debit: "topup", credit: own, amount: 1_000n, balance: 1_000n, reference: "pay" }),
    charge: line(2, { kind: "usage", debit: own, amount: COST, balance: 880n, reference: "r1", bill: BILL }),
    more: [],
    account: { name: "a", lines: [] },
    answered: { id: "r1", account: "a", owed: exactly(COST), status: 200, paidBy: "balance" },
    refused: { id: "r2", owed: NOTHING, status: 403 },
    log: [
      { id: "r1", status: 200, end: "complete", charged: COST },
      { id: "r2", status: 403, end: undefined, charged: undefined },
    ],
    run: {},
  };
}

function line(seq: number, members: Partial<Line>): Line {
  const rest = { kind: "usage", debit: "acct_A", credit: "revenue:g", amount: 0n, balance: 0n, reference: "" };
  return { seq, ...rest, bill: undefined, ...members };
}

/** @param spoil makes one thing wrong. */
function kindsFoundIn(spoil: (books: Books) => Partial<Books> | undefined): Set<FindingKind> {
  const right = rightBooks();
  const { topup, charge, more, account, answered, refused, log, run } = { ...right, ...spoil(right) };
  const lines = account.lines && [topup, charge, ...more];
  const payments = [{ account: "a", id: "pay", amount: 1_000n, isPromised: true }];
  const findings = judge({
    requests: [answered, refused],
    unnamed: 0,
    payments,
    accounts: [{ ...account, lines }],
    log,
    countsStayInHold: true,
    ...run,
  });
  return new Set(findings.map(({ kind }) => kind));
}

/** The same charge a second time, also subtracted from the balance. */
const again = (books: Books, members: Partial<Line> = {}): Partial<Books> => ({
  more: [{ ...books.charge, seq: 3, balance: 760n, ...members }],
});

const SPOILT: Readonly<Record<FindingKind, (books: Books) => Partial<Books> | undefined>> = {
  missing: ({ charge }) => ({ charge: { ...charge, kind: "absorbed", debit: "absorbed:x", balance: 1_000n } }),
  double: (books) => again(books),
  wrong_amount: ({ answered }) => ({ answered: { ...answered, owed: exactly(COST + 1n) } }),
  wrong_account: ({ answered }) => ({ answered: { ...answered, account: "b" } }),
  wrong_source: ({ answered }) => ({ answered: { ...answered, paidBy: "card" } }),
  wrong_absorbed: ({ answered }) => ({ answered: { ...answered, owed: { ...exactly(COST), absorbed: 5n } } }),
  wrong_price: ({ answered }) => ({ answered: { ...answered, inputPrices: new Set([PRICE + 1n]) } }),
  not_its_worth: ({ charge }) => ({ charge: { ...charge, bill: { ...BILL, worth: COST - 1n } } }),
  above_hold: ({ charge }) => ({ charge: { ...charge, bill: { ...BILL, hold: COST - 1n, ended: "client_gone" } } }),
  charged_refusals: (books) => again(books, { reference: "r2" }),
  not_attempted: ({ answered }) => ({ answered: { ...answered, attempted: false } }),
  strangers: (books) => again(books, { reference: "r3" }),
  dead_letters: () => ({ run: { deadLetters: [["r1", "unknown account"]] } }),
  payments_missing: ({ topup }) => ({ topup: { ...topup, reference: "other" } }),
  payments_wrong: () => ({ run: { payments: [{ account: "a", id: "pay", amount: 999n, isPromised: false }] } }),
  payments_double: ({ topup }) => ({ more: [{ ...topup, seq: 3, balance: 1_880n }] }),
  codes_double: () => {
    const card = { kind: "card", debit: "cards:day", credit: "ent_1", balance: 880n, reference: "code" };
    return { more: [line(3, card), line(4, card)] };
  },
  below_zero: ({ account }) => ({ account: { ...account, lowest: -1n } }),
  out_of_balance: ({ charge }) => ({ charge: { ...charge, balance: 881n } }),
  moved_to_itself: () => ({ more: [line(3, { kind: "adjust", credit: "acct_A", balance: 880n, reference: "adj" })] }),
  accounts_missing: () => ({ account: { name: "a", lines: undefined } }),
  held: ({ account }) => ({ account: { ...account, held: "one hold" } }),
  left_over: () => ({ run: { leftOver: { unsettled: 1 } } }),
  log_missing: ({ log }) => ({ log: log.slice(0, 1) }),
  log_double: ({ log }) => ({ log: [...log, ...log.slice(1)] }),
  log_differs: ({ refused }) => ({ refused: { ...refused, status: 429 } }),
  log_strangers: ({ log }) => ({ log: [...log, { id: "r4", status: 200, end: undefined, charged: undefined }] }),
  unexpected: ({ answered }) => ({ answered: { ...answered, unexpected: ["a stream without an end"] } }),
};

test("correct books give no finding", () => {
  assert.deepEqual([...kindsFoundIn(() => undefined)], []);
});

for (const [kind, means] of Object.entries(FINDINGS) as [FindingKind, string][]) {
  test(`the judge finds ${kind}: ${means}`, () => {
    assert.ok(kindsFoundIn(SPOILT[kind]).has(kind), `found: ${[...kindsFoundIn(SPOILT[kind])]}`);
  });
}

test("an estimate may differ from what the client computed only if the client got an estimate, too", () => {
  const estimated = (owed: SeenRequest["owed"]) => (books: Books) => ({
    charge: { ...books.charge, bill: { ...BILL, counted: "estimate" } },
    answered: { ...books.answered, owed },
  });
  assert.deepEqual([...kindsFoundIn(estimated({ ...exactly(99n), unlessEstimated: true }))], []);
  assert.deepEqual([...kindsFoundIn(estimated(exactly(99n)))], ["wrong_amount"]);
});

test("the unpaid part of a charge counts as charged, and a card without a quota pays without an amount", () => {
  const overHold = line(3, {
    kind: "absorbed",
    debit: "absorbed:over_hold",
    amount: 20n,
    balance: 900n,
    reference: "r1",
  });
  const poor = ({ charge }: Books) => ({ charge: { ...charge, amount: 100n, balance: 900n }, more: [overHold] });
  assert.deepEqual([...kindsFoundIn(poor)], []);
  const covered = ({ charge, answered, log }: Books) => ({
    charge: { ...charge, debit: "ent_1", amount: 0n, balance: 1_000n },
    answered: { ...answered, owed: exactly(0n), paidBy: "card" } as const,
    log: log.map((one) => (one.id === "r1" ? { ...one, charged: 0n } : one)),
  });
  assert.deepEqual([...kindsFoundIn(covered)], []);
});
