/**
 * A store refuses an amount above the largest balance as a defect of its caller. What a request may cost can exceed it, by
 * the prices of tokens or of hosted tools: the hold is then the largest balance, and the client is refused for its funds.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { measure } from "../../../src/admit/terms.ts";
import type { Model } from "../../../src/values/catalog.ts";
import { NANO_USD_MAX } from "../../../src/values/money.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

function holdsAt(price: Model["price"]): readonly (bigint | undefined)[] {
  const quote = measure(
    {
      ...{ protocol: "chat", model: MODEL.name, stream: true, choices: 1, bodyBytes: 300, textBytes: 300, media: [] },
      ...{ compacts: false, limit: { field: "max_tokens", value: 100 }, serviceTier: undefined, tierParam: undefined },
      ...{ hostedTools: ["web_search"], demandedTools: [], hasOwnTools: true, options: [] },
      ...{ thinkingBudget: 0, textTokens: 0, includeUsage: false },
    },
    { ...MODEL, price },
    CATALOG,
  );
  assert.ok("groups" in quote);
  const paying = quote.groups.find(({ group }) => group === "money");
  return [paying?.holdMin, paying?.holdFull, paying?.worstCase.holdMin, paying?.worstCase.holdFull];
}

const MOST = Array(4).fill(NANO_USD_MAX);

test("a hold that tokens, or hosted tools, would raise above the largest balance is the largest balance", () => {
  const { price } = MODEL;
  const tools = new Map([["web_search", 1n]]);
  assert.deepEqual(holdsAt({ ...price, input: NANO_USD_MAX * 1_000_000n, tools }), MOST);
  assert.deepEqual(holdsAt({ ...price, tools: new Map([["web_search", NANO_USD_MAX]]) }), MOST);
});
