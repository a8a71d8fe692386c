/**
 * Memos and the journal's charges are assembled from pieces. They are byte for byte what JSON.stringify produces for the same
 * members, whatever names a configuration uses and whatever an upstream counts, so that ledgers and journals of earlier
 * versions have the same form.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { encodeCharge } from "../../../src/settle/journal/payload.ts";
import { type AttemptNote, type Bill, memoOf } from "../../../src/settle/memo.ts";
import type { SettleAsk } from "../../../src/store/settlement.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { Multiplier, PriceSnapshot, UnitPrices } from "../../../src/values/price.ts";

/** The same numbers each time (a linear congruential generator). */
let seed = 1;
const below = (most: number): number => {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
  return Math.floor((seed / 2_147_483_648) * most);
};
const oneOf = <T>(...these: readonly T[]): T => these[below(these.length)] as T;
const maybe = <T>(value: () => T): T | undefined => (below(2) === 0 ? undefined : value());
const several = <T>(most: number, make: () => T): T[] => Array.from({ length: below(most + 1) }, make);

const NAMES = [
  "gpt-1",
  "",
  'a"b',
  "back\\slash",
  "ä",
  "日本",
  "\u0000\n\u001f\u007f",
  "\ud800",
  "\u2028",
  '","x":"1',
  "__proto__",
];
const name = (): string => oneOf(...NAMES, `name ${below(3_000)}`);
const count = (): number => oneOf(0, 1, below(1_000), 1e9, 1e21, 1.5, Number.NaN, Number.POSITIVE_INFINITY, -0);
const nano = () => nanoUsd(BigInt(oneOf(0, below(1_000_000), 9_000_000_000_000_000)));
const calls = (): Record<string, number> => Object.fromEntries(several(2, () => [name(), count()]));
const tokens = () => {
  return { input: count(), cachedInput: count(), cacheWrite: count(), output: count(), reasoning: count() };
};

/* The reference: how memos and charges were written before they were assembled from pieces. */

const priced = ({ input, cachedInput, cacheWrite, cacheWrite1h, output }: UnitPrices, prefix = "") => {
  const named = { input, cached_input: cachedInput, cache_write: cacheWrite, cache_write_1h: cacheWrite1h, output };
  return Object.fromEntries(Object.entries(named).map(([kind, price]) => [prefix + kind, String(price)]));
};
const tools = (of: PriceSnapshot) => Object.fromEntries([...of.tools].map(([tool, price]) => [tool, String(price)]));

function memoOfMembers(
  hold: bigint,
  catalog: string,
  bill: Bill,
  facts: NonNullable<Parameters<typeof memoOf>[2]>,
): string {
  const { usage, counted } = bill.metered;
  const prices = facts.prices ?? bill.snapshot;
  const attempts = facts.attempts?.map(({ cost, costPrices, ...note }) => ({
    ...{ upstream: note.upstream, model: note.model, outcome: note.outcome, status: note.status },
    ...{ input: note.input, output: note.output, counted: note.counted, cost: String(cost), paid_by: note.paid_by },
    ...{ why: note.why, cost_prices: costPrices && priced(costPrices.prices) },
    cost_tools: costPrices && tools(costPrices),
  }));
  return JSON.stringify({
    ...{ input: usage.input, cached_input: usage.cachedInput, cache_write: usage.cacheWrite },
    ...{ cache_write_1h: usage.cacheWrite1h, output: usage.output, reasoning: usage.reasoning },
    ...{ tool_calls: usage.toolCalls, unpaid_tool_calls: bill.unpaidCalls?.length ? bill.unpaidCalls : undefined },
    ...priced(prices.prices, "price_"),
    ...{ price_tools: tools(prices), multiplier: String(prices.multiplier), tier: bill.tier, counted },
    final: counted === "upstream" && bill.ended !== "complete" ? true : undefined,
    surprise: bill.surprises?.length ? bill.surprises.join(",") : undefined,
    ...{
      ended: bill.ended,
      paid: facts.paid,
      hold: String(hold),
      held: facts.heldWorstCase ? "dearest" : undefined,
      catalog,
    },
    ...{ upstream: bill.route.upstream, upstream_model: bill.route.upstreamModel, cost: String(bill.cost) },
    ...{ answered_by: bill.answeredBy, attempts: attempts?.length ? attempts : undefined },
  });
}

function chargeOfMembers(ask: SettleAsk, more: { readonly hold?: bigint; readonly orphan?: boolean }): string {
  const asText = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
  const { requestId, tag, admittedAtMs, group, kind, entitlement, keyId, perKey, model, amount, absorbed } = ask;
  const { absorbedCause, upstream, tokensTaken, tokensUsed, tokensPerMinute, counted, voided, attempts, costs } = ask;
  const { memo, leftUnpaid, idempotency } = ask;
  const written = {
    ...{ requestId, tag, admittedAtMs, group, kind, entitlement, keyId, perKey, model, amount, absorbed },
    ...{ absorbedCause, upstream, tokensTaken, tokensUsed, tokensPerMinute, counted, tokens: ask.tokens },
    ...{ voided, attempts, costs, memo, leftUnpaid, idempotency },
  };
  return JSON.stringify({ ask: written, orphan: more.orphan, hold: more.hold }, asText);
}

/* The inputs. */

const pricesOf = (): UnitPrices => {
  return { input: nano(), cachedInput: nano(), cacheWrite: nano(), cacheWrite1h: nano(), output: nano() };
};
const TABLES = [pricesOf(), pricesOf(), pricesOf()];
const TOOLS = [
  new Map<string, bigint>(),
  new Map([["search", 5n]]),
  new Map([
    ['a"b', 1n],
    ["ä", 2n],
  ]),
];
const snapshotOf = (): PriceSnapshot => {
  return { prices: oneOf(...TABLES), tools: oneOf(...TOOLS), multiplier: BigInt(below(3_000_000)) as Multiplier };
};
const ROUTES = Array.from({ length: 4 }, () => ({ upstream: name(), upstreamModel: name() }) as Bill["route"]);

function billOf(): Bill {
  const { input, cachedInput, cacheWrite, output, reasoning } = tokens();
  const usage = { input, cachedInput, cacheWrite, cacheWrite1h: count(), output, reasoning, toolCalls: calls() };
  return {
    route: oneOf(...ROUTES),
    metered: { usage, counted: oneOf("upstream", "estimate") },
    tier: maybe(name),
    ended: oneOf("complete", "client_gone", name()),
    surprises: several(2, () => oneOf("output_above_max", "input_above_context")),
    unpaidCalls: several(2, () => ({ tool: name(), calls: count(), reason: "not_offered" as const })),
    answeredBy: maybe(name),
    cost: nano(),
    snapshot: snapshotOf(),
  };
}

function noteOf(): AttemptNote {
  return {
    ...{ upstream: name(), model: name(), outcome: oneOf("ok", name()), status: maybe(count) },
    ...{ input: count(), output: count(), counted: oneOf("upstream", "estimate", "none"), cost: nano() },
    ...{ paid_by: oneOf("client", "absorbed", "nobody"), why: name(), costPrices: maybe(snapshotOf) },
  };
}

function factsOf() {
  const prices = below(2) === 0 ? {} : { prices: snapshotOf() };
  const attempts = maybe(() => several(3, noteOf));
  return { ...prices, heldWorstCase: maybe(() => below(2) === 0), paid: maybe(name), attempts };
}

function askOf(memo: string): SettleAsk {
  const cost = () => {
    const sums = { requests: count(), tokens: tokens(), cost: nano(), absorbed: nano(), charged: below(2) === 0 };
    return { upstream: name(), model: name(), ...sums };
  };
  const attempt = () => ({ upstream: name(), cause: name(), amount: nano(), memo: oneOf(memo, "{}", name()) });
  const left = () => ({ allowance: nano(), amount: nano(), memo, costs: several(2, cost) });
  const kept = () => ({ key: name(), fingerprint: name(), streamed: below(2) === 0, untilMs: count() });
  return {
    ...{ requestId: oneOf("01a2b3", name()) as SettleAsk["requestId"], tag: name() as SettleAsk["tag"] },
    ...{ admittedAtMs: count(), group: name(), kind: oneOf("time_card", "pay_per_use"), entitlement: maybe(name) },
    ...{ keyId: oneOf("key_1", name()), perKey: below(2) === 0, model: name(), amount: nano(), absorbed: nano() },
    ...{ absorbedCause: maybe(name), upstream: maybe(name), tokensTaken: count(), tokensUsed: count() },
    ...{ tokensPerMinute: maybe(count), counted: maybe(name), tokens: maybe(tokens), voided: below(2) === 0 },
    ...{ attempts: maybe(() => several(2, attempt)), costs: maybe(() => several(2, cost)) },
    ...{ memo, leftUnpaid: maybe(left), idempotency: maybe(kept) },
  };
}

test("a memo, and the charge that contains it, are byte for byte what JSON.stringify makes of their members", () => {
  let before = "{}";
  for (let round = 0; round < 5_000; round++) {
    const [hold, catalogVersion, bill, facts] = [nano(), oneOf("v1", name()), billOf(), factsOf()];
    const memo = memoOf({ hold, catalogVersion }, bill, facts);
    assert.equal(memo, memoOfMembers(hold, catalogVersion, bill, facts));
    // The memo just made, an earlier one, and texts that are no memo.
    for (const given of [memo, before, "{}", name()]) {
      const ask = askOf(given);
      const more = oneOf<{ hold?: typeof hold; orphan?: boolean }>(
        {},
        { hold },
        { orphan: true },
        { orphan: false, hold },
      );
      assert.equal(encodeCharge(ask, more), chargeOfMembers(ask, more));
    }
    before = memo;
  }
});

test("a key whose next request has another model, group or card is written with those", () => {
  const ask = { ...askOf("{}"), keyId: "key_1", group: "a", model: "m", entitlement: undefined };
  const asks = [ask, { ...ask, model: "n" }, { ...ask, group: "b" }, { ...ask, entitlement: "card" }, { ...ask }];
  for (const one of [...asks, { ...ask, perKey: !ask.perKey }, ...asks]) {
    assert.equal(encodeCharge(one, {}), chargeOfMembers(one, {}));
  }
});
