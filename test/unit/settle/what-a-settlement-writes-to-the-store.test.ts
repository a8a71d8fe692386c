/** What a settlement asks the store to write (src/settle/lines.ts): who pays for each try, in which order, and what counts. */
import assert from "node:assert/strict";
import test from "node:test";
import { settlementOf } from "../../../src/settle/charge.ts";
import { voidOf } from "../../../src/settle/lines.ts";
import type { AttemptFacts, Ending } from "../../../src/settle/meter.ts";
import type { ChargeTerms } from "../../../src/store/charge-terms.ts";
import type { Group, Model, Route } from "../../../src/values/catalog.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { Multiplier, Price } from "../../../src/values/price.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const PRICE: Price = { ...MODEL.price, input: 1_000_000n, output: 1_000_000n, tools: new Map([["web_search", 7n]]) };
const FREE: Price = { ...PRICE, input: 0n, output: 0n };
const [ANY] = MODEL.routes as [Route];
const EAST: Route = { ...ANY, upstream: "east", upstreamModel: "small", cost: PRICE };
/** Another model of the same upstream, at ten times the price. */
const LARGE: Route = { ...EAST, upstreamModel: "large", cost: { ...PRICE, input: 10_000_000n } };
const PRICED: Model = { ...MODEL, price: PRICE, routes: [EAST, LARGE] };
const GROUP = CATALOG.groups.get("money") as Group;

const TERMS: ChargeTerms = {
  ...{ requestId: "lines" as RequestId, tag: "lines" as AccountTag, keyId: "key", model: PRICED, group: GROUP },
  tokensTaken: 10,
  terms: { inputTokens: 10, inputEstimate: 8, choices: 1, tier: undefined, tools: [], options: [] },
  ...{ hold: nanoUsd(50n), outputMost: 100, entitlement: undefined, unmetered: false, counted: "tokens" },
  ...{ storeTimeMs: 0, catalogVersion: "1" },
};

function tried({ upstream, upstreamModel: model }: Route, outcome: string): AttemptFacts {
  const facts = { status: undefined, bytesReceived: 0, sentToUpstream: true, refusedByUpstream: false };
  return { upstream, model, outcome, ...facts };
}

/** An answer that its upstream has counted. */
const ANSWERED: Ending = {
  ...{ delivered: true, complete: true, route: EAST, cause: "complete", attempts: [tried(EAST, "ok")] },
  measured: {
    ...{ usage: { ...NO_USAGE, input: 40, output: 60 }, final: true, silentMs: 0 },
    produced: { bytes: 0, tokens: 0, deltas: 0 },
  },
};
const LEFT: Ending = {
  ...{ ...ANSWERED, delivered: false, complete: false, route: undefined, cause: "client_gone" },
  ...{ attempts: [tried(EAST, "client_gone")], leftAllowance: nanoUsd(1n) },
};

const notesOf = (memo: string | undefined): Record<string, unknown>[] => JSON.parse(memo ?? "{}").attempts;

test("a try is priced by the model that it used, also if its upstream has several", () => {
  const { ask } = settlementOf(TERMS, { ...ANSWERED, attempts: [tried(LARGE, "upstream_timeout"), tried(EAST, "ok")] });
  assert.deepEqual(
    ask.attempts?.map(({ upstream, amount }) => [upstream, amount]),
    [["east", 80n]],
  );
});

test('an answer is noted as "answered" if its client got all of it, and else with its end cause', () => {
  const why = (ending: Partial<Ending>) => notesOf(settlementOf(TERMS, { ...ANSWERED, ...ending }).ask.memo)[0]?.why;
  assert.equal(why({}), "answered");
  assert.equal(why({ complete: false, cause: "upstream_timeout" }), "upstream_timeout");
  assert.equal(why({ delivered: false, cause: "client_gone" }), "client_gone");
});

test("a try without cost still says who pays: the client or the gateway for an answer, and neither for a failure", () => {
  const model = { ...PRICED, routes: [{ ...EAST, cost: FREE }] };
  const [route] = model.routes as [Route];
  const paidBy = (ending: Ending) => {
    const { memo } = settlementOf({ ...TERMS, model }, ending).ask;
    return notesOf(memo).map((note) => note.paid_by);
  };
  const attempts = [tried(EAST, "upstream_timeout"), tried(EAST, "ok")];
  assert.deepEqual(paidBy({ ...ANSWERED, route, attempts }), ["nobody", "client"]);
  assert.deepEqual(paidBy({ ...ANSWERED, route, attempts, delivered: false }), ["nobody", "absorbed"]);
});

test("the cost of a broken answer above its hold comes right after the charge, before the failed tries", () => {
  const attempts = [tried(LARGE, "upstream_timeout"), tried(EAST, "ok")];
  const { ask } = settlementOf(TERMS, { ...ANSWERED, complete: false, cause: "upstream_invalid", attempts });
  assert.equal(ask.amount, 50n);
  assert.deepEqual(
    ask.attempts?.map(({ cause, amount }) => [cause, amount]),
    [
      ["cut_over_hold", 50n],
      ["upstream_timeout", 80n],
    ],
  );
});

test("a client whose stop string ended the stream pays what the upstream counted, also above the hold", () => {
  const { ask } = settlementOf(TERMS, { ...ANSWERED, complete: false, stopped: true, cause: "upstream_invalid" });
  assert.deepEqual([ask.amount, ask.attempts], [100n, undefined]);
});

test("a client that disconnects unpaid has used its tokens, even if nothing would be charged; an answer that the upstream broke off uses none", () => {
  const { ask } = settlementOf(TERMS, LEFT);
  assert.deepEqual([ask.leftUnpaid?.amount, ask.tokensUsed, ask.voided], [10n, 10, true]);
  const group = { ...GROUP, multiplier: 0n as Multiplier };
  const given = settlementOf({ ...TERMS, group }, LEFT).ask;
  assert.deepEqual([given.leftUnpaid, given.absorbed, given.tokensUsed], [undefined, 10n, 10]);
  const { ask: broken } = settlementOf(TERMS, {
    ...ANSWERED,
    delivered: false,
    complete: false,
    cause: "upstream_invalid",
  });
  assert.deepEqual([broken.voided, broken.tokensUsed], [true, 0]);
});

test("a client that disconnects on a card without a quota has used its tokens, which are its only limit", () => {
  const { ask } = settlementOf({ ...TERMS, unmetered: true }, LEFT);
  assert.deepEqual([ask.leftUnpaid, ask.absorbed, ask.tokensUsed], [undefined, 10n, 10]);
});

test("a hold at the highest possible cost is noted on the line, whoever pays", () => {
  const held = (ending: Ending) => JSON.parse(settlementOf({ ...TERMS, heldWorstCase: true }, ending).ask.memo).held;
  assert.deepEqual([held(ANSWERED), held({ ...ANSWERED, delivered: false })], ["dearest", "dearest"]);
});

test("tool calls that were not asked for are absorbed at the tier of the answer", () => {
  const usage = { ...NO_USAGE, input: 1, toolCalls: { web_search: 3 } };
  const tiered = { ...PRICED, price: { ...PRICE, tiers: new Map([["flex", PRICE]]) } };
  const { ask } = settlementOf(
    { ...TERMS, model: tiered },
    { ...ANSWERED, tier: "flex", measured: { ...ANSWERED.measured, usage } },
  );
  assert.deepEqual(
    ask.attempts?.map(({ cause, amount, memo }) => [cause, amount, JSON.parse(memo).tier]),
    [["unpaid_tool_calls", 21n, "flex"]],
  );
});

test("a hold that is given back says what the request was counted in, and who would have paid", () => {
  assert.equal(voidOf(TERMS).counted, "tokens");
  assert.equal(settlementOf(TERMS, ANSWERED).ask.counted, "tokens");
  const cards = CATALOG.groups.get("cards") as Group;
  assert.equal(voidOf({ ...TERMS, group: cards, entitlement: "card_1" }).kind, "time_card");
  assert.equal(voidOf({ ...TERMS, group: cards }).kind, "pay_per_use", "without a card the balance pays");
});
