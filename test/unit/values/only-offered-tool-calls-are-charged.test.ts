/** Which of the tool calls counted by an upstream a client pays for. */
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import {
  billTools,
  mergedCalls,
  pricedCalls,
  TOOL_CALLS_PLAUSIBLE_MAX,
  TOOLS_MAX,
  withShownCalls,
} from "../../../src/values/tokens/tool-calls.ts";

test("calls of a tool that the request has offered are charged, with the name that has the price", () => {
  const offers = ["web_search", "web_search_options", "mcp_toolset", "computer_use", "search_parameters"];
  const counts = ["web_search", "web_search", "mcp", "computer", "live_search"];
  for (const [index, offered] of offers.entries()) {
    const bill = billTools({ [counts[index] as string]: 3 }, ["file_search", offered], 50);
    assert.deepEqual(bill, { charged: { [offered]: 3 }, unpaid: [] });
  }
});

test("calls of a tool that was not offered, and calls beyond the maximum, are not charged", () => {
  assert.deepEqual(billTools({ web_search: 500 }, [], 50), {
    charged: {},
    unpaid: [{ tool: "web_search", calls: 500, reason: "not_offered" }],
  });
  assert.deepEqual(billTools({ web_search: 500, web_fetch: 2 }, ["web_search"], 50), {
    charged: { web_search: 50 },
    unpaid: [
      { tool: "web_search", calls: 450, reason: "over_maximum" },
      { tool: "web_fetch", calls: 2, reason: "not_offered" },
    ],
  });
  assert.deepEqual(billTools({ web_search: 5 }, ["web_search"], 0).charged, {});
});

test("two names of one tool share its maximum", () => {
  const bill = billTools({ computer: 4, computer_use: 4 }, ["computer_use"], 6);
  assert.deepEqual(bill.charged, { computer_use: 6 });
  assert.deepEqual(bill.unpaid, [{ tool: "computer_use", calls: 2, reason: "over_maximum" }]);
});

test("an impossibly large count is reduced to the largest accepted one", () => {
  const { unpaid } = billTools({ web_search: 900_000_000 }, [], 50);
  assert.deepEqual(unpaid, [{ tool: "web_search", calls: TOOL_CALLS_PLAUSIBLE_MAX, reason: "not_offered" }]);
});

test("unpaid calls are priced by the tool's name or a related one, and otherwise not at all", () => {
  const unpaid = billTools({ web_search: 2, computer: 1, dance: 9 }, [], 50).unpaid;
  const prices = new Map([
    ["web_search_options", 1n],
    ["computer", 1n],
  ]);
  assert.deepEqual(pricedCalls(unpaid, prices), { web_search_options: 2, computer: 1 });
});

test("calls that a reply shows are added only for offered tools that the server does not count itself", () => {
  const shown = { web_search: 3, web_fetch: 2, code_execution: 1 };
  assert.deepEqual(withShownCalls({ web_search: 1 }, shown, ["web_search_options", "web_fetch"]), {
    web_search: 1,
    web_fetch: 2,
  });
});

test("counts of at most sixteen tools are kept", () => {
  const many = Object.fromEntries(Array.from({ length: TOOLS_MAX + 4 }, (_, at) => [`tool_${at}`, 1]));
  assert.equal(Object.keys(mergedCalls({ first: 1 }, many)).length, TOOLS_MAX);
  assert.equal(mergedCalls({ first: 1 }, { ...many, first: 5 }).first, 5, "a known tool is still counted");
});

test("property: every call is charged or left unpaid, none twice, none above the maximum", () => {
  const name = fc.constantFrom("web_search", "web_search_options", "mcp", "mcp_toolset", "file_search", "x");
  fc.assert(
    fc.property(
      fc.dictionary(name, fc.integer({ min: 0, max: TOOL_CALLS_PLAUSIBLE_MAX })),
      fc.uniqueArray(name),
      fc.nat(100),
      (counted, offered, max) => {
        const { charged, unpaid } = billTools(counted, offered, max);
        const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
        const all = sum(Object.values(counted));
        const paid = Object.values(charged);
        assert.equal(sum(paid) + sum(unpaid.map(({ calls }) => calls)), all);
        for (const [tool, calls] of Object.entries(charged)) {
          assert.ok(offered.includes(tool as never) && calls > 0 && calls <= max);
        }
      },
    ),
  );
});
