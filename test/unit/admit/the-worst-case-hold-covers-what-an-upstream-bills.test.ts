/**
 * The worst-case hold of an account whose charges exceeded its holds repeatedly (promise 1), and what every hold covers
 * in addition to the tokens. A part that is left out here is free for anyone who knows it.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { affordableLimit, measure, type OfferedTerms, type Terms } from "../../../src/admit/terms.ts";
import type { Catalog, Group, Model } from "../../../src/values/catalog.ts";
import type { Envelope } from "../../../src/values/members/envelope.ts";
import type { Multiplier } from "../../../src/values/price.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

// Nano-dollars per token: figures that need no rounding.
const PRICE = { ...MODEL.price, input: 1_000_000n, output: 5_000_000n };
const INPUT = 2n;
const OUTPUT = 5n;
const PRICED: Model = {
  ...{
    ...MODEL,
    price: {
      ...PRICE,
      tools: new Map([
        ["web_search", 7_000n],
        ["zoom", 11n],
      ]),
      extras: new Set(["zoom"]),
    },
  },
};

const FACTS: Envelope = {
  ...{
    protocol: "chat",
    model: MODEL.name,
    stream: true,
    choices: 1,
    bodyBytes: 3_000,
    textBytes: 3_000,
    media: [],
    compacts: false,
  },
  ...{ limit: { field: "max_tokens", value: 100 }, serviceTier: undefined, tierParam: undefined },
  ...{
    hostedTools: [],
    demandedTools: [],
    hasOwnTools: true,
    options: [],
    thinkingBudget: 0,
    textTokens: 0,
    includeUsage: false,
  },
};

function measured(facts: Partial<Envelope>): Terms & { readonly paying: OfferedTerms; readonly double: OfferedTerms } {
  const quote = measure({ ...FACTS, ...facts }, PRICED, CATALOG);
  assert.ok("groups" in quote);
  const { terms, groups } = quote;
  const [paying, double] = ["money", "double"].map((name) => groups.find(({ group }) => group === name));
  assert.ok(paying && double);
  return { ...terms, paying, double };
}

/** A hold in nano-dollars. */
const held = (input: number, output: number) => BigInt(input) * INPUT + BigInt(output) * OUTPUT;

test("the worst case is one token per byte and the model's maximum output; the smallest hold is a useful answer to the same input", () => {
  const { paying, double } = measured({});
  assert.deepEqual([paying.holdFull, paying.holdMin], [held(1_000, 100), held(1_000, 16)]);
  const { ceilings: _, toolsHold: __, ...worstCase } = paying.worstCase;
  assert.deepEqual(worstCase, {
    ...{ holdFull: held(3_000, MODEL.maxOutputTokens), holdMin: held(3_000, 16), inputTokens: 3_000 },
  });
  assert.deepEqual(
    [double.worstCase.holdFull, double.worstCase.holdMin],
    [2n * held(3_000, MODEL.maxOutputTokens), 2n * held(3_000, 16)],
  );
});

test("with a limit below a useful answer, the full and the smallest hold cover that limit", () => {
  const { paying } = measured({ limit: { field: "max_tokens", value: 8 } });
  assert.deepEqual(
    [paying.holdFull, paying.holdMin, paying.worstCase.holdMin],
    [held(1_000, 8), held(1_000, 8), held(3_000, 8)],
  );
});

test("every choice is held, in the worst case as well", () => {
  const { paying } = measured({ choices: 4 });
  assert.deepEqual([paying.holdFull, paying.holdMin], [held(1_000, 400), held(1_000, 64)]);
  assert.deepEqual(
    [paying.worstCase.holdFull, paying.worstCase.holdMin],
    [held(3_000, 4 * MODEL.maxOutputTokens), held(3_000, 64)],
  );
});

test("a thinking budget above the limit is held in addition to it, and does not pay for answer tokens", () => {
  const limit = (value: number) => ({ field: "max_tokens", value });
  const { paying, double: _, ...terms } = measured({ limit: limit(16), thinkingBudget: 500, choices: 2 });
  assert.deepEqual([paying.holdFull, paying.holdMin], [held(1_000, 2 * 516), held(1_000, 2 * 516)]);
  assert.equal(affordableLimit(terms, paying, paying.holdFull), 16);
  // A budget within the limit adds nothing; the model's maximum is never exceeded; the hold of a stream without a limit
  // grows instead.
  assert.equal(measured({ limit: limit(600), thinkingBudget: 500 }).paying.holdFull, held(1_000, 600));
  const most = 16 + MODEL.maxOutputTokens;
  assert.equal(measured({ limit: limit(16), thinkingBudget: 1e9 }).paying.holdFull, held(1_000, most));
  // If the endpoint has no limit, all that the model can produce is held, thinking included.
  const implied = { field: "max_tokens", value: 16, implied: true };
  assert.equal(measured({ limit: implied, thinkingBudget: 500 }).paying.holdFull, held(1_000, 16));
  const open = { limit: undefined, stream: true, thinkingBudget: 1e9 };
  assert.equal(measured(open).paying.holdFull, measured({ ...open, thinkingBudget: 0 }).paying.holdFull);
});

test("input that an upstream may read twice is held twice, in the worst case as well", () => {
  const { paying } = measured({ compacts: true });
  assert.deepEqual([paying.inputTokens, paying.holdFull], [2_000, held(2_000, 100)]);
  assert.deepEqual([paying.worstCase.inputTokens, paying.worstCase.holdMin], [6_000, held(6_000, 16)]);
});

test("in the worst case, input that is not text fills the context, whatever the operator's figure for it", () => {
  for (const compacts of [false, true]) {
    const { paying } = measured({ media: [{ kind: "file", tokens: 10 }], compacts });
    const input = MODEL.contextTokens * (compacts ? 2 : 1);
    assert.deepEqual([paying.worstCase.inputTokens, paying.worstCase.holdMin], [input, held(input, 16)]);
  }
});

test("hosted tools and extras are held in addition to the tokens, and their part does not pay for output", () => {
  const { paying, double, ...terms } = measured({ hostedTools: ["web_search"], options: ["zoom"] });
  const beside = 10n * 7_000n + 11n;
  assert.equal(paying.holdFull, held(1_000, 100) + beside);
  // In the worst case: the maximum number of charged calls, and the context read again after each.
  const { max } = PRICED.toolCalls;
  assert.equal(paying.worstCase.inputTokens, (1 + max) * MODEL.contextTokens);
  assert.equal(paying.worstCase.holdMin, held((1 + max) * MODEL.contextTokens, 16) + BigInt(max) * 7_000n + 11n);
  assert.equal(
    measured({ options: ["zoom"] }).paying.worstCase.holdMin,
    held(3_000, 16) + 11n,
    "an option that is not a tool adds no calls",
  );
  assert.equal(double.holdFull, 2n * (held(1_000, 100) + beside));
  assert.equal(affordableLimit(terms, paying, paying.holdFull), 100);
  assert.equal(affordableLimit({ ...terms, choices: 4 }, paying, paying.holdFull), 25);
});

for (const [name, output] of [
  ["dearer", 20n],
  ["cheaper", 1n],
] as const) {
  test(`a request that may be charged at several tiers is held at the most expensive one, if its own is ${name}`, () => {
    const fast = { ...PRICE, output: output * 1_000_000n };
    const model = { ...PRICED, price: { ...PRICED.price, tiers: new Map([["fast", fast]]) } };
    const [route] = model.routes;
    assert.ok(route);
    // An upstream of another protocol may not know the tier and charge the usual price.
    const routes = [{ ...route, protocol: "messages" as const }];
    const quote = measure({ ...FACTS, serviceTier: "fast", tierParam: "speed" }, { ...model, routes }, CATALOG);
    assert.ok("groups" in quote);
    const paying = quote.groups.find(({ group }) => group === "money");
    assert.ok(paying);
    const dearest = output > OUTPUT ? output : OUTPUT;
    assert.equal(paying.holdFull, 1_000n * INPUT + 100n * dearest);
    assert.equal(affordableLimit(quote.terms, paying, paying.holdFull), 100);
  });
}

test("of a combined tier each part may be charged alone, and a tier with additional parts is not held", () => {
  const outputs = { fast: 8n, "fast+us": 10n, "fast+us+pro": 90n, "fast+pro": 60n, pro: 40n };
  const tiers = new Map(
    Object.entries(outputs).map(([name, output]) => [name, { ...PRICE, output: output * 1_000_000n }]),
  );
  const [route] = PRICED.routes;
  assert.ok(route);
  const model = { ...PRICED, price: { ...PRICED.price, tiers }, routes: [{ ...route, protocol: "messages" as const }] };
  const quote = measure({ ...FACTS, serviceTier: "fast+us", tierParam: "speed" }, model, CATALOG);
  assert.ok("groups" in quote);
  assert.deepEqual(quote.terms.tiers, [undefined, "fast", "fast+us"]);
  const paying = quote.groups.find(({ group }) => group === "money");
  assert.equal(paying?.holdFull, 1_000n * INPUT + 100n * 10n);
});

test("a fraction of a nano-dollar for a tool is held as a whole one", () => {
  const groups = [...CATALOG.groups.values()].map((group) => [
    group.name,
    { ...group, multiplier: 100_001n as Multiplier },
  ]);
  const catalog: Catalog = { ...CATALOG, groups: new Map(groups as [string, Group][]) };
  const quote = measure({ ...FACTS, options: ["zoom"] }, PRICED, catalog);
  assert.ok("groups" in quote);
  // 11 times 0.100001, rounded up.
  assert.equal(quote.groups[0]?.toolsHold, 2n);
});
