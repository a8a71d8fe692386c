/**
 * A client may offer a hosted tool by several of its dated names, and by a member that asks for it. All of them have one
 * price, and the maximum number of calls is that of the tool, so the hold covers them once.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { measure } from "../../../src/admit/terms.ts";
import type { Model } from "../../../src/values/catalog.ts";
import type { Envelope } from "../../../src/values/members/envelope.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const PRICED: Model = { ...MODEL, price: { ...MODEL.price, tools: new Map([["web_search", 7_000n]]) } };

function toolsHold(facts: Pick<Envelope, "hostedTools" | "options">): readonly [readonly string[], bigint | undefined] {
  const quote = measure(
    {
      ...{ protocol: "chat", model: MODEL.name, stream: true, choices: 1, bodyBytes: 300, textBytes: 300, media: [] },
      ...{ compacts: false, limit: { field: "max_tokens", value: 100 }, serviceTier: undefined, tierParam: undefined },
      ...{ demandedTools: [], hasOwnTools: true, thinkingBudget: 0, textTokens: 0, includeUsage: false },
      ...facts,
    },
    PRICED,
    CATALOG,
  );
  assert.ok("groups" in quote);
  return [quote.terms.tools, quote.groups.find(({ group }) => group === "money")?.toolsHold];
}

test("a hosted tool that is offered under two names, and by a member as well, is held once", () => {
  const once = [["web_search"], BigInt(PRICED.toolCalls.held) * 7_000n] as const;
  assert.deepEqual(toolsHold({ hostedTools: ["web_search"], options: [] }), once);
  assert.deepEqual(toolsHold({ hostedTools: ["web_search_preview", "web_search_20250305"], options: [] }), once);
  assert.deepEqual(toolsHold({ hostedTools: ["web_search"], options: ["web_search_options"] }), once);
});
