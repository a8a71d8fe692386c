/** How much an admitted request may write, and how long its idempotency key is kept (src/admit/permit.ts). */
import assert from "node:assert/strict";
import test from "node:test";
import { permitOf } from "../../../src/admit/permit.ts";
import { measure } from "../../../src/admit/terms.ts";
import type { Admitted } from "../../../src/store/admission.ts";
import type { Catalog } from "../../../src/values/catalog.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import type { Envelope } from "../../../src/values/members/envelope.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const FACTS: Envelope = {
  ...{
    protocol: "chat",
    model: MODEL.name,
    stream: false,
    choices: 1,
    bodyBytes: 300,
    textBytes: 300,
    textTokens: 0,
    media: [],
  },
  ...{ limit: { field: "max_tokens", value: 16 }, thinkingBudget: 0, compacts: false, includeUsage: false },
  ...{ serviceTier: undefined, tierParam: undefined, hostedTools: [], demandedTools: [], options: [] },
  hasOwnTools: true,
};

/** Output tokens that the smallest hold covers. */
const USEFUL_TOKENS = 16;

/** @param outputTokens that the worst-case hold covers, if it is not the full one. */
function permit(
  facts: Partial<Envelope>,
  { keepMs = 0, worstCase = false, outputTokens = NaN } = {},
  catalog: Catalog = CATALOG,
) {
  const quote = measure({ ...FACTS, ...facts }, MODEL, catalog);
  assert.ok("groups" in quote);
  const offered = quote.groups.find(({ group }) => group === "money");
  assert.ok(offered);
  const answer: Admitted = {
    ...{ outcome: "admitted", accountId: "a", keyId: "k", group: "money", entitlement: undefined, unmetered: false },
    ...{
      storeTimeMs: 1_000,
      limits: { requests: undefined, tokens: undefined },
      counted: "",
      free: nanoUsd(10n ** 12n),
    },
    hold: Number.isNaN(outputTokens)
      ? worstCase
        ? offered.worstCase.holdFull
        : offered.holdFull
      : heldFor(offered.worstCase, outputTokens),
    ...(worstCase ? { worstCase } : {}),
  };
  const request = {
    ...{
      requestId: "permit" as RequestId,
      protocol: "chat" as const,
      key: { tag: "tag" as AccountTag },
      holdTtlMs: 60_000,
    },
    idempotency: { key: "key", fingerprint: "body", streamed: false, keepMs },
  };
  return permitOf(request, { ...FACTS, ...facts }, quote, answer, catalog);
}

/** A hold grows by the same amount for each output token. */
function heldFor({ holdMin, holdFull }: { readonly holdMin: bigint; readonly holdFull: bigint }, outputTokens: number) {
  const each = (holdFull - holdMin) / BigInt(MODEL.maxOutputTokens - USEFUL_TOKENS);
  return nanoUsd(holdMin + BigInt(outputTokens - USEFUL_TOKENS) * each);
}

test("a worst-case hold that is not full grows at worst-case prices", () => {
  const { defaultOutputTokens } = MODEL;
  const facts = { stream: true, limit: undefined, textBytes: 3_000 };
  const { growth, hold } = permit(facts, { worstCase: true, outputTokens: defaultOutputTokens });
  assert.equal(growth?.stepTokens, defaultOutputTokens);
  assert.equal(growth.holdFor(defaultOutputTokens), hold);
  assert.ok(growth.holdFor(2 * defaultOutputTokens) > hold);
});

test("an idempotency key is kept as long as the operator says, and at least as long as the request may run", () => {
  assert.equal(permit({}, { keepMs: 5_000 }).idempotency?.untilMs, 61_000);
  assert.equal(permit({}, { keepMs: 90_000 }).idempotency?.untilMs, 91_000);
});

test("a permit has as many tokens as the token limit was charged, even if another group's rules add text", () => {
  const money = CATALOG.groups.get("money");
  assert.ok(money);
  const wordy = { ...money, name: "wordy", addedInputBytes: 3_000 };
  const { tokensTaken, terms } = permit({}, {}, { ...CATALOG, groups: new Map([...CATALOG.groups, ["wordy", wordy]]) });
  const alone = permit({});
  assert.equal(terms.inputTokens, alone.terms.inputTokens, "the payer's own input");
  assert.ok(tokensTaken > alone.tokensTaken, `${tokensTaken}`);
});

test("thinking that is held in addition to the limit may be written in addition to it", () => {
  assert.equal(permit({}).outputMost, 16);
  assert.equal(permit({ thinkingBudget: 500 }).outputMost, 516);
});

test("with a full worst-case hold, a stream without a limit may still use all the context that its likely input leaves", () => {
  // One token per byte would leave 100 tokens of the context; at the operator's figure there is room for all.
  const facts = { stream: true, limit: undefined, textBytes: MODEL.contextTokens - 100 };
  assert.equal(permit(facts, { worstCase: true }).outputLimit, MODEL.maxOutputTokens);
});
