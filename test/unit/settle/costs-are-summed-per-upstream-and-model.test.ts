// A store takes one cost per upstream and model: tries at the same one, and tool calls that were not asked for, are added up.
import assert from "node:assert/strict";
import test from "node:test";
import { eachOnce, upstreamCost } from "../../../src/settle/lines.ts";
import { NANO_USD_MAX, nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE, type Usage } from "../../../src/values/tokens/usage.ts";

const EAST = { upstream: "east", upstreamModel: "m" };
const WEST = { upstream: "west", upstreamModel: "m" };

function costOf(route: typeof EAST, usage: Usage, nano: bigint, charged: boolean) {
  const bill = { route, metered: { usage, counted: "upstream" }, cost: nanoUsd(nano) };
  return upstreamCost(bill as Parameters<typeof upstreamCost>[0], charged);
}
const chargedCost = (route: typeof EAST, usage: Usage, nano: bigint) => costOf(route, usage, nano, true);
const absorbedCost = (route: typeof EAST, usage: Usage, nano: bigint) => costOf(route, usage, nano, false);

const USAGE = { ...NO_USAGE, input: 10, cacheWrite: 1, cacheWrite1h: 2, output: 5 };
const TOKENS = { input: 10, cachedInput: 0, cacheWrite: 3, output: 5, reasoning: 0 };

test("costs of the same upstream and model are added up, and those without an amount are left out", () => {
  const costs = eachOnce([
    chargedCost(EAST, USAGE, 7n),
    absorbedCost(EAST, { ...NO_USAGE, input: 4 }, 2n),
    // Tool calls are on the bill of the request that caused them.
    absorbedCost(EAST, { ...NO_USAGE, toolCalls: { web_search: 3 } }, 30n),
    absorbedCost(WEST, USAGE, 1n),
    absorbedCost({ ...WEST, upstreamModel: "free" }, USAGE, 0n),
  ]);
  assert.deepEqual(costs, [
    {
      ...{ upstream: "east", model: "m", requests: 2, tokens: { ...TOKENS, input: 14 } },
      ...{ cost: 39n, absorbed: 32n, charged: true },
    },
    { upstream: "west", model: "m", requests: 1, tokens: TOKENS, cost: 1n, absorbed: 1n, charged: false },
  ]);
});

test("a charged answer is listed even if it costs nothing, and a sum keeps its amount", () => {
  assert.equal(eachOnce([chargedCost(EAST, USAGE, 0n)]).length, 1);
  const beside = [chargedCost(EAST, USAGE, 0n), absorbedCost(WEST, USAGE, 1n)];
  assert.deepEqual(eachOnce(beside), beside, "both attempts are listed");
  const [sum] = eachOnce([absorbedCost(EAST, USAGE, NANO_USD_MAX), absorbedCost(EAST, USAGE, 1n)]);
  assert.deepEqual([sum?.cost, sum?.absorbed], [NANO_USD_MAX, NANO_USD_MAX]);
});

test("a single cost follows the same rules as several", () => {
  const charged = chargedCost(EAST, USAGE, 7n);
  const absorbed = absorbedCost(EAST, USAGE, 2n);
  const free = absorbedCost(WEST, USAGE, 0n);
  assert.deepEqual(eachOnce([]), []);
  assert.deepEqual(eachOnce([charged]), [charged]);
  assert.deepEqual(eachOnce([absorbed]), [absorbed]);
  assert.deepEqual(eachOnce([free]), []);
  assert.deepEqual(eachOnce([charged, free]), [charged]);
});
