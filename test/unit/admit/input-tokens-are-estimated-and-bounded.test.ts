/** How many tokens an input may have (src/admit/input.ts): held, likely, and in the worst case. */
import assert from "node:assert/strict";
import test from "node:test";
import { inputOf, worstCaseInput } from "../../../src/admit/input.ts";
import { affordableLimit, measure } from "../../../src/admit/terms.ts";
import type { Catalog } from "../../../src/values/catalog.ts";
import type { Envelope } from "../../../src/values/members/envelope.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const FACTS: Envelope = {
  ...{
    protocol: "chat",
    model: MODEL.name,
    stream: false,
    choices: 1,
    bodyBytes: 0,
    textBytes: 0,
    textTokens: 0,
    media: [],
  },
  ...{ limit: { field: "max_tokens", value: 100 }, thinkingBudget: 0, compacts: false, includeUsage: false },
  ...{ serviceTier: undefined, tierParam: undefined, hostedTools: [], demandedTools: [], options: [] },
  hasOwnTools: true,
};
const CONTEXT = MODEL.contextTokens;
const FIGURES = { image: 1_000, imageMax: 5_000, file: 1_000 };
const SEEING = { ...MODEL, mediaTokens: FIGURES };

/** The tokens that are held, and the likely ones. */
function input(facts: Partial<Envelope>, addedBytes = 0): readonly [number, number] {
  const { inputTokens, inputEstimate } = inputOf({ ...FACTS, ...facts }, SEEING, addedBytes);
  return [inputTokens, inputEstimate];
}

test("text is held at the operator's figure, or by its sample if that is dense, plus the text that rules add", () => {
  assert.deepEqual(input({ textBytes: 1_200 }), [400, 300]);
  assert.deepEqual(input({ textBytes: 1_200, textTokens: 504 }), [400, 300], "its density is that of code");
  assert.deepEqual(input({ textBytes: 1_200, textTokens: 600 }), [600, 300]);
  assert.deepEqual(input({ textBytes: 1_200, textTokens: 600 }, 300), [700, 375]);
});

test("an image of unknown size is held at the operator's maximum, and a file at twice its usual cost", () => {
  assert.deepEqual(input({ media: [{ kind: "image", tokens: undefined }] }), [5_000, 1_000]);
  assert.deepEqual(input({ media: [{ kind: "image", tokens: 9_000 }] }), [5_000, 5_000]);
  assert.deepEqual(input({ media: [{ kind: "image", tokens: 2_000 }] }), [2_000, 2_000]);
  assert.deepEqual(input({ media: [{ kind: "file", tokens: 4_000 }] }), [4_000, 2_000]);
  assert.deepEqual(input({ media: [{ kind: "file", tokens: undefined }] }), [CONTEXT, 1_000]);
});

test("content that the server reads in addition to the body fills the context in the hold, and adds nothing to the likely figure", () => {
  assert.deepEqual(input({ textBytes: 1_200, readsStored: true }), [CONTEXT, 300]);
  assert.equal(worstCaseInput({ ...FACTS, textBytes: 1_200, readsStored: true }, SEEING, 0, 0), CONTEXT);
  assert.equal(worstCaseInput({ ...FACTS, textBytes: 1_200 }, SEEING, 7, 0), 1_207);
  assert.equal(
    worstCaseInput({ ...FACTS, textBytes: 1_200 }, SEEING, 7, 3),
    4 * CONTEXT,
    "the input is read again after each call",
  );
  assert.equal(worstCaseInput({ ...FACTS, textBytes: 1_200, compacts: true }, SEEING, 7, 3), 5 * CONTEXT);
});

test("a conversation that is compacted on the way is read twice, each time within the context", () => {
  assert.deepEqual(input({ textBytes: 240_000, compacts: true }), [160_000, 120_000]);
  assert.deepEqual(input({ textBytes: 3 * CONTEXT + 300, compacts: true }), [2 * CONTEXT, 2 * (0.75 * CONTEXT + 75)]);
});

test("an input that is probably larger than the context is held at its full size, because some servers accept and bill it", () => {
  const held = (facts: Partial<Envelope>) => inputOf({ ...FACTS, ...facts }, SEEING, 0).heldTokens;
  assert.equal(held({ textBytes: 4 * CONTEXT }), CONTEXT);
  assert.equal(held({ textBytes: 4 * CONTEXT + 4_000 }), CONTEXT + 1_000);
  assert.equal(held({ textBytes: 40 * CONTEXT, compacts: true }), 20 * CONTEXT);
  assert.equal(held({ textBytes: 300 }), 100);
  assert.deepEqual(input({ textBytes: 40 * CONTEXT }), [CONTEXT, CONTEXT], "an estimated charge stays within the hold");
  assert.equal(
    held({ textBytes: 40 * CONTEXT, textTokens: 3 * CONTEXT }),
    3 * CONTEXT,
    "blanks and escapes are not tokens",
  );
  assert.equal(held({ textBytes: 40 * CONTEXT, textTokens: 0.5 * CONTEXT }), CONTEXT);
  assert.equal(
    worstCaseInput({ ...FACTS, textBytes: 40 * CONTEXT, textTokens: 3 * CONTEXT }, SEEING, 0, 0),
    3 * CONTEXT,
  );
  assert.equal(worstCaseInput({ ...FACTS, textBytes: 40 * CONTEXT }, SEEING, 0, 0), 10 * CONTEXT);
  const media = [{ kind: "file", tokens: undefined }] as const;
  assert.equal(worstCaseInput({ ...FACTS, textBytes: 40 * CONTEXT, media }, SEEING, 0, 0), 10 * CONTEXT);
  assert.equal(worstCaseInput({ ...FACTS, textBytes: 4, media }, SEEING, 0, 0), CONTEXT);
});

test("a prediction is held as input and as output, because its rejected tokens are billed as output", () => {
  const quoteOf = (more: Partial<Envelope>) => {
    const quote = measure({ ...FACTS, textBytes: 3_000, ...more }, MODEL, CATALOG);
    assert.ok("groups" in quote);
    const money = quote.groups.find(({ group }) => group === "money");
    assert.ok(money);
    return { terms: quote.terms, ...money };
  };
  const [without, beside] = [quoteOf({}), quoteOf({ predictedBytes: 3_000 })];
  const tokens = 3_000 / MODEL.inputBytesPerToken;
  assert.equal(beside.terms.predictedTokens, tokens);
  assert.equal(beside.holdFull, quoteOf({ limit: { field: "max_tokens", value: 100 + tokens } }).holdFull);
  assert.equal(beside.holdMin - without.holdMin, beside.holdFull - without.holdFull);
  assert.equal(
    affordableLimit(beside.terms, beside, beside.holdFull),
    100,
    "predicted tokens do not raise the limit of the client",
  );
  const dense = quoteOf({ predictedBytes: 3_000, textTokens: 2_400 });
  assert.equal(dense.terms.predictedTokens, 2_400, "its density is that of the rest of the body");
  assert.equal(quoteOf({ predictedBytes: 90_000_000 }).terms.predictedTokens, MODEL.maxOutputTokens);
});

test("the token bucket counts the most text that the rules of any group add, and a hold the text of its own group", () => {
  const added = new Map(Object.entries({ money: 0, double: 300, cards: 30 }));
  const groups = [...CATALOG.groups].map(
    ([name, one]) => [name, { ...one, addedInputBytes: added.get(name) ?? 0 }] as const,
  );
  const catalog: Catalog = { ...CATALOG, groups: new Map(groups) };
  const quote = measure({ ...FACTS, textBytes: 1_200 }, MODEL, catalog);
  assert.ok("groups" in quote);
  assert.equal(quote.terms.inputTokens, 500);
  assert.deepEqual(
    quote.groups.map(({ group, inputTokens, perKey }) => [group, inputTokens, perKey]),
    [
      ["money", 400, false],
      ["double", 500, true],
      ["cards", 410, false],
    ],
  );
});
