/**
 * The sums by upstream and model show how many requests an upstream has answered. One that is charged counts even if it
 * used no tokens; tool calls that no client pays for belong to a request that is counted already.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { upstreamCost } from "../../../src/settle/lines.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";

const requestsOf = (toolCalls: Readonly<Record<string, number>>, charged: boolean) => {
  const bill = {
    route: { upstream: "east", upstreamModel: "m" },
    metered: { usage: { ...NO_USAGE, toolCalls }, counted: "upstream" },
    cost: nanoUsd(3n),
  };
  return upstreamCost(bill as Parameters<typeof upstreamCost>[0], charged).requests;
};

test("a charged answer is one request whatever it used, and unpaid tool calls alone are none", () => {
  assert.deepEqual([requestsOf({}, true), requestsOf({ web_search: 2 }, true)], [1, 1]);
  assert.equal(requestsOf({ web_search: 2 }, false), 0);
});
