/**
 * A ledger line as its owner sees it: how the amount was computed, why it is as it is, and nothing that belongs to the
 * operator.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { showOwnLine, triesOf } from "../../../../src/console/owner/own-line.ts";
import { type AttemptNote, type Bill, memoOf } from "../../../../src/settle/memo.ts";
import type { LedgerLine } from "../../../../src/store/records.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import type { Multiplier } from "../../../../src/values/price.ts";

const TAG = "4tR0000abc" as AccountTag;
const ATTEMPT = {
  upstream: "secret-upstream",
  model: "secret-model",
  outcome: "ok",
  status: 200,
  input: 1_000,
  output: 7,
  counted: "upstream",
  cost: "123456789",
  paid_by: "client",
  why: "answered",
};

const METERED: Bill["metered"] = {
  usage: {
    input: 1_001,
    cachedInput: 3,
    cacheWrite: 0,
    cacheWrite1h: 0,
    output: 7,
    reasoning: 2,
    toolCalls: { search: 2 },
  },
  counted: "upstream",
};

const BILL = {
  metered: METERED,
  snapshot: {
    prices: {
      input: 1_250_000_001n,
      cachedInput: 125_000_000n,
      cacheWrite: 0n,
      cacheWrite1h: 0n,
      output: 10_000_000_000n,
    },
    tools: new Map([["search", 10_000_000n]]),
    multiplier: 1_500_000n as Multiplier,
  },
  tier: "priority",
  ended: "complete",
  route: { upstream: "secret-upstream", upstreamModel: "secret-model" },
  cost: nanoUsd(123_456_789n),
  answeredBy: "secret-answerer",
  unpaidCalls: [],
  surprises: ["secret-surprise"],
} as unknown as Bill;

function memo(
  change: Partial<Bill> = {},
  hold = nanoUsd(50_000_000n),
  attempts: readonly object[] = [ATTEMPT],
): string {
  return memoOf({ hold, catalogVersion: "v1" }, { ...BILL, ...change }, { attempts: attempts as AttemptNote[] });
}

/** The above tokens and calls at their prices, times 1.5. */
const COMPUTED = 31_982_438n;

function line(change: Partial<LedgerLine> = {}): LedgerLine {
  return {
    seq: 7,
    atMs: 1_788_177_600_000,
    kind: "usage",
    debit: `acct_${TAG}`,
    credit: "revenue:big",
    amount: nanoUsd(COMPUTED),
    balance: 1_000_000_000n,
    reference: "0198c5d2a1b27c3e8f00112233445566",
    group: "big",
    model: "big-1",
    key: "key_4tR0000abcXyZ01234",
    memo: memo(),
    ...change,
  };
}

const whyOf = (change: Partial<LedgerLine>) => showOwnLine(line(change), TAG).charge?.why;

test("each row is exactly count times price, and their sum times the multiplier is the computed amount", () => {
  const { charge, usd, change_usd: change } = showOwnLine(line(), TAG);
  assert.ok(charge);
  assert.deepEqual([usd, change], ["0.031982438", "-0.031982438"]);
  assert.equal(charge.computed_usd, usd);
  const nonZero = charge.tokens.filter(({ count }) => count > 0);
  assert.deepEqual(
    nonZero.map(({ kind, count, price_usd, usd: product }) => [kind, count, price_usd, product]),
    [
      ["input", 1_001, "1.250000001", "0.001251250001001"],
      ["cached_input", 3, "0.125", "0.000000375"],
      ["output", 7, "10.00", "0.00007"],
    ],
  );
  assert.deepEqual(charge.calls, [{ kind: "search", count: 2, price_usd: "0.01", usd: "0.02" }]);
  // In units of 10^-15 USD: the sum of the rows, times 1.5, rounded half up to 10^-9.
  const units = [...charge.tokens, ...charge.calls].reduce((sum, row) => sum + fifteenths(row.usd), 0n);
  assert.equal((units * 3n + 1_000_000n) / 2_000_000n, COMPUTED);
  assert.deepEqual(
    [charge.multiplier, charge.tier, charge.hold_usd, charge.reasoning_tokens],
    ["1.50", "priority", "0.05", 2],
  );
});

function fifteenths(usd: string): bigint {
  const [whole = "", fraction = ""] = usd.split(".");
  return BigInt(whole + fraction.padEnd(15, "0"));
}

test("the reason of an amount: as computed, limited by the hold or the funds, a card without a quota, or unknown", () => {
  assert.equal(whyOf({}), "exact");
  const estimated = memo({ metered: { ...METERED, counted: "estimate" }, ended: "client_gone" }, nanoUsd(1_000_000n));
  assert.equal(whyOf({ memo: estimated, amount: nanoUsd(1_000_000n) }), "hold");
  assert.equal(whyOf({ amount: nanoUsd(5n) }), "funds");
  assert.equal(whyOf({ amount: nanoUsd(0n), debit: "ent_abc" }), "card");
  assert.equal(whyOf({ amount: nanoUsd(COMPUTED + 1n) }), "line");
});

test("a charge to a card does not change the balance; payments change it in either direction", () => {
  const paid = showOwnLine(line({ debit: "ent_abc" }), TAG);
  assert.deepEqual([paid.paid_by, paid.change_usd], ["ent_abc", "0.00"]);
  const change = (kind: LedgerLine["kind"], debit: string, credit: string) =>
    showOwnLine(line({ kind, debit, credit, amount: nanoUsd(1_000_000_000n), memo: "secret note" }), TAG);
  assert.equal(change("topup", "topup", `acct_${TAG}`).change_usd, "1.00");
  assert.equal(change("adjust", `acct_${TAG}`, "adjust").change_usd, "-1.00");
  assert.equal(change("opening", "opening", `acct_${TAG}`).change_usd, "0.00");
});

test("no kind of line, nor its attempts, shows anything that belongs to the operator", () => {
  for (const kind of ["usage", "topup", "adjust", "card", "opening", "unreadable"] as const) {
    for (const text of [memo(), "secret note", "", "{", JSON.stringify({ cost: "123456789", secret: 1 })]) {
      const shown = JSON.stringify(showOwnLine(line({ kind, memo: text }), TAG));
      assert.doesNotMatch(shown, /secret|123456789|0\.123456789/, kind);
    }
  }
  const tries = triesOf(
    memo({}, undefined, [{ ...ATTEMPT, outcome: "upstream_timeout", paid_by: "absorbed", why: "sent" }, ATTEMPT]),
  );
  assert.deepEqual(tries, [
    { outcome: "upstream_timeout", status: 200, charged: false, why: "sent" },
    { outcome: "ok", status: 200, charged: true, why: "answered" },
  ]);
});

test("a memo without figures leads to no invented explanation", () => {
  for (const text of ["", "{", "{}", '{"input": 1}']) assert.equal(showOwnLine(line({ memo: text }), TAG).charge, null);
});
