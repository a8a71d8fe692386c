/**
 * docs/failure-model.md rows C10 and 64 as a property: for any usage that an upstream reports, the charge is an integer
 * amount within bounds.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { readUsage as readChat } from "../../../../src/convert/chat/usage.ts";
import { MessageUsage } from "../../../../src/convert/messages/usage.ts";
import { readUsage as readResponses } from "../../../../src/convert/responses/usage.ts";
import { settlementOf } from "../../../../src/settle/charge.ts";
import type { ChargeTerms } from "../../../../src/store/charge-terms.ts";
import type { Group, Model, Route } from "../../../../src/values/catalog.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import type { Multiplier, UnitPrices } from "../../../../src/values/price.ts";
import type { RequestId } from "../../../../src/values/request-id.ts";
import { TOKEN_COUNT_MAX, type Usage } from "../../../../src/values/tokens/usage.ts";

const PRICES = { input: 1_000n, cachedInput: 100n, cacheWrite: 1_250n, cacheWrite1h: 2_000n, output: 10_000n };
const CONTEXT_TOKENS = 200_000;
const OUTPUT_TOKENS_MAX = 32_000;
/** The largest valid counts, each at its price. */
const DEAREST = BigInt(TOKEN_COUNT_MAX) * (1_000n + 100n + 1_250n + 2_000n + 10_000n);
const HOLD = 4_000_000n;

const PRICE = {
  input: nanoUsd(PRICES.input * 1_000_000n),
  cachedInput: nanoUsd(PRICES.cachedInput * 1_000_000n),
  cacheWrite: nanoUsd(PRICES.cacheWrite * 1_000_000n),
  cacheWrite1h: nanoUsd(PRICES.cacheWrite1h * 1_000_000n),
  output: nanoUsd(PRICES.output * 1_000_000n),
} as UnitPrices;
const price = { ...PRICE, tiers: new Map(), aboveTokens: [], tools: new Map() };
const TERMS: ChargeTerms = {
  requestId: "r" as RequestId,
  tag: "0123456789" as AccountTag,
  keyId: "key",
  group: { name: "g", kind: "pay_per_use", multiplier: 1_000_000n as Multiplier, limits: {} } as Group,
  model: {
    name: "m",
    price,
    contextTokens: CONTEXT_TOKENS,
    maxOutputTokens: OUTPUT_TOKENS_MAX,
    toolCalls: { held: 10, max: 50 },
  } as unknown as Model,
  tokensTaken: 10,
  terms: { inputTokens: 10, inputEstimate: 7, choices: 1, tier: undefined, tools: [] },
  hold: nanoUsd(HOLD),
  outputMost: 1_000,
  entitlement: undefined,
  unmetered: false,
  storeTimeMs: 0,
  catalogVersion: "v",
};
const ROUTE = { upstream: "up", cost: price } as unknown as Route;

/** What an upstream sends instead of a count: mostly numbers, realistic and absurd. */
const said = fc.oneof(
  { weight: 16, arbitrary: fc.integer({ min: 0, max: 60_000 }) },
  fc.integer(),
  fc.double(),
  fc.constantFrom(
    -1,
    -0,
    2.5,
    1e30,
    Number.POSITIVE_INFINITY,
    Number.NaN,
    2 ** 53,
    2 ** 53 + 2,
    TOKEN_COUNT_MAX,
    TOKEN_COUNT_MAX + 1,
  ),
  fc.constantFrom("7", "", null, true, [], {}, [7], undefined),
  fc.anything(),
);
const NAMES = [
  "prompt_tokens",
  "completion_tokens",
  "input_tokens",
  "output_tokens",
  "cache_read_input_tokens",
  "cache_creation_input_tokens",
  "prompt_cache_hit_tokens",
  "total_tokens",
];
const DETAILS = ["cached_tokens", "cache_write_tokens", "reasoning_tokens", "ephemeral_1h_input_tokens"];
const counts = (names: readonly string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, said])), { requiredKeys: [] });
const usage = fc.tuple(counts(NAMES), fc.oneof(counts(DETAILS), said)).map(([top, details]) => ({
  ...top,
  prompt_tokens_details: details,
  completion_tokens_details: details,
  input_tokens_details: details,
  output_tokens_details: details,
  cache_creation: details,
}));

const READERS: Readonly<Record<string, (values: readonly unknown[]) => Usage | undefined>> = {
  chat: (values) => values.reduce<Usage | undefined>((was, value) => readChat(value) ?? was, undefined),
  // Sent twice in a stream, the second merged with the first.
  messages(values) {
    const read = new MessageUsage();
    for (const value of values) read.count(value);
    return read.usage;
  },
  responses: (values) =>
    values.reduce<Usage | undefined>((was, value) => readResponses({ usage: value }) ?? was, undefined),
};

for (const [protocol, read] of Object.entries(READERS)) {
  test(`${protocol}: C10: any usage, reported once or several times, is either charged within bounds or rejected`, () => {
    let believed = 0;
    let refused = 0;
    const property = fc.property(
      fc.array(fc.oneof({ weight: 5, arbitrary: usage }, said), { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 0, max: 1_000_000 }),
      fc.boolean(),
      (values, producedBytes, complete) => {
        const found = read(values);
        for (const count of found === undefined ? [] : Object.values({ ...found, toolCalls: 0, outputUncounted: 0 })) {
          assert.ok(Number.isSafeInteger(count) && count >= 0, String(count));
        }
        const measured = {
          usage: found,
          final: found !== undefined,
          produced: { bytes: producedBytes, tokens: Math.ceil(producedBytes / 4), deltas: 1 },
          silentMs: 0,
        };
        const ending = { delivered: true, complete, route: ROUTE, cause: "client_gone", measured };
        const { ask, metered } = settlementOf(TERMS, ending);
        assert.ok(ask.amount >= 0n && ask.amount <= DEAREST, `${ask.amount}`);
        assert.ok(Number.isSafeInteger(ask.tokensUsed) && ask.tokensUsed >= 0);
        if (metered?.counted === "estimate") assert.ok(ask.amount <= HOLD, `${ask.amount} over the hold`);
        if (metered?.counted === "upstream") believed += 1;
        else refused += 1;
      },
    );
    fc.assert(property, { numRuns: 3_000 });
    assert.ok(believed > 100 && refused > 100, `${believed} accepted, ${refused} refused`);
  });
}
