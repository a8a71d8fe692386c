/** What an admitted request may write, and until when its idempotency key is kept (src/admit/permit.ts). */
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

/** Of what a hold at the dearest covers. */
const USEFUL_TOKENS = 16;

/** @param outputTokens that are held for at the dearest, in place of the whole hold. */
function permit(
  facts: Partial<Envelope>,
  { keepMs = 0, dear = false, outputTokens = NaN } = {},
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
      ? dear
        ? offered.dear.holdFull
        : offered.holdFull
      : heldFor(offered.dear, outputTokens),
    ...(dear ? { dear } : {}),
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

/** A hold grows with its output by the same amount for each token. */
function heldFor({ holdMin, holdFull }: { readonly holdMin: bigint; readonly holdFull: bigint }, outputTokens: number) {
  const each = (holdFull - holdMin) / BigInt(MODEL.maxOutputTokens - USEFUL_TOKENS);
  return nanoUsd(holdMin + BigInt(outputTokens - USEFUL_TOKENS) * each);
}

test("a hold at the dearest that is not whole grows at the dearest", () => {
  const { defaultOutputTokens } = MODEL;
  const facts = { stream: true, limit: undefined, textBytes: 3_000 };
  const { growth, hold } = permit(facts, { dear: true, outputTokens: defaultOutputTokens });
  assert.equal(growth?.stepTokens, defaultOutputTokens);
  assert.equal(growth.holdFor(defaultOutputTokens), hold);
  assert.ok(growth.holdFor(2 * defaultOutputTokens) > hold);
});

test("an idempotency key is kept for as long as the operator says, and no shorter than the request may run", () => {
  assert.equal(permit({}, { keepMs: 5_000 }).idempotency?.untilMs, 61_000);
  assert.equal(permit({}, { keepMs: 90_000 }).idempotency?.untilMs, 91_000);
});

test("what the limit of tokens was asked for is what it is told back, also where another group's rules add text", () => {
  const money = CATALOG.groups.get("money");
  assert.ok(money);
  const wordy = { ...money, name: "wordy", addedInputBytes: 3_000 };
  const { tokensTaken, terms } = permit({}, {}, { ...CATALOG, groups: new Map([...CATALOG.groups, ["wordy", wordy]]) });
  const alone = permit({});
  assert.equal(terms.inputTokens, alone.terms.inputTokens, "the payer's own input");
  assert.ok(tokensTaken > alone.tokensTaken, `${tokensTaken}`);
});

test("thinking that is held beside the limit may be written beside it", () => {
  assert.equal(permit({}).outputMost, 16);
  assert.equal(permit({ thinkingBudget: 500 }).outputMost, 516);
});

test("where the dearest is held whole, a stream without a limit is still asked for all that its likely input leaves", () => {
  // A token a byte leaves 100 tokens of the context; at the operator's figure there is room for all.
  const facts = { stream: true, limit: undefined, textBytes: MODEL.contextTokens - 100 };
  assert.equal(permit(facts, { dear: true }).outputLimit, MODEL.maxOutputTokens);
});
