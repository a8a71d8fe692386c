/**
 * The memo that `settle/lines.ts` writes is enough to compute the same amount again, for every price and every end of a
 * reply.
 */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { settlementOf } from "../../../../src/settle/charge.ts";
import type { ChargeTerms } from "../../../../src/store/charge-terms.ts";
import type { Group, Model, Route } from "../../../../src/values/catalog.ts";
import type { AccountTag } from "../../../../src/values/key.ts";
import { nanoUsd } from "../../../../src/values/money.ts";
import type { Multiplier, UnitPrices } from "../../../../src/values/price.ts";
import { recompute } from "../../../../src/values/recompute.ts";
import type { RequestId } from "../../../../src/values/request-id.ts";

const nano = fc.bigInt({ min: 0n, max: 75_000_000_000n });
const tokens = fc.integer({ min: 0, max: 100_000 });
const unitPrices: fc.Arbitrary<UnitPrices> = fc.record({
  input: nano,
  cachedInput: nano,
  cacheWrite: nano,
  cacheWrite1h: nano,
  output: nano,
});
const usage = fc.record({
  input: tokens,
  cachedInput: tokens,
  cacheWrite: tokens,
  cacheWrite1h: tokens,
  output: tokens,
  reasoning: tokens,
  toolCalls: fc.record({ web_search: fc.integer({ min: 0, max: 9 }) }),
});
const situation = fc.record({
  standard: unitPrices,
  priority: unitPrices,
  long: unitPrices,
  longPriority: unitPrices,
  search: nano,
  tier: fc.constantFrom("priority", undefined),
  multiplier: fc.bigInt({ min: 0n, max: 5_000_000n }),
  usage: fc.option(usage, { nil: undefined }),
  final: fc.boolean(),
  complete: fc.boolean(),
  delivered: fc.boolean(),
  producedTokens: tokens,
  silentMs: fc.integer({ min: 0, max: 100_000 }),
  hold: nano,
  offered: fc.boolean(),
});

test("an amount follows from its memo: tiers, steps, tools, multipliers, estimates, cut streams, absorbed costs", () => {
  fc.assert(
    fc.property(situation, (now) => {
      const price = {
        ...now.standard,
        tiers: new Map([
          ["priority", { ...now.priority, aboveTokens: [{ tokens: 250_000, prices: now.longPriority }] }],
        ]),
        aboveTokens: [{ tokens: 150_000, prices: now.long }],
        tools: new Map([["web_search", now.search]]),
      };
      const route = { upstream: "up", cost: price } as unknown as Route;
      const terms: ChargeTerms = {
        requestId: "r" as RequestId,
        tag: "0123456789" as AccountTag,
        keyId: "key",
        group: { name: "g", kind: "pay_per_use", multiplier: now.multiplier as Multiplier, limits: {} } as Group,
        model: {
          name: "m",
          price,
          contextTokens: 400_000,
          maxOutputTokens: 100_000,
          toolCalls: { held: 2, max: 5 },
        } as unknown as Model,
        tokensTaken: 10,
        terms: {
          inputTokens: 10,
          inputEstimate: 7,
          choices: 1,
          tier: now.tier,
          tools: now.offered ? ["web_search"] : [],
        },
        hold: nanoUsd(now.hold),
        outputMost: 100_000,
        entitlement: undefined,
        unmetered: false,
        storeTimeMs: 0,
        catalogVersion: "v",
      };
      const measured = {
        usage: now.usage,
        final: now.final,
        produced: { bytes: 4 * now.producedTokens, tokens: now.producedTokens, deltas: 1 },
        silentMs: now.silentMs,
      };
      const ending = { delivered: now.delivered, complete: now.complete, route, cause: "client_gone", measured };
      const { ask } = settlementOf(terms, ending);
      const again = recompute(ask.memo);
      assert.ok(again, ask.memo);
      assert.equal(now.delivered ? again.owed : again.cost, now.delivered ? ask.amount : ask.absorbed);
      for (const line of ask.attempts ?? []) assert.equal(recompute(line.memo)?.cost, line.amount);
    }),
    { numRuns: 1_000 },
  );
});

test("a memo in which a figure is missing or invalid proves nothing", () => {
  const full = {
    ...{ input: 1, cached_input: 0, cache_write: 0, cache_write_1h: 0, output: 2, reasoning: 0, tool_calls: {} },
    ...{ price_input: "1000000000", price_cached_input: "0", price_cache_write: "0", price_cache_write_1h: "0" },
    ...{ price_output: "10000000000", price_tools: {}, multiplier: "1000000", counted: "upstream", ended: "complete" },
    hold: "0",
  };
  assert.deepEqual(recompute(JSON.stringify(full)), { cost: 21_000n, owed: 21_000n });
  assert.equal(recompute(JSON.stringify({ ...full, counted: "estimate" }))?.owed, 0n);
  assert.equal(recompute(JSON.stringify({ ...full, ended: "client_gone" }))?.owed, 0n);
  for (const member of Object.keys(full).filter((name) => name !== "counted" && name !== "ended")) {
    assert.equal(recompute(JSON.stringify({ ...full, [member]: undefined })), undefined, member);
    assert.equal(recompute(JSON.stringify({ ...full, [member]: -1 })), undefined, member);
    assert.equal(recompute(JSON.stringify({ ...full, [member]: null })), undefined, member);
  }
  for (const memo of ["", "{}", "[]", "null", "7", "{"]) assert.equal(recompute(memo), undefined, memo);
});
