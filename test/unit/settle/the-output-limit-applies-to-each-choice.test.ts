/**
 * Several choices (`n`) are several answers: the output limit that was sent applies to each, and the estimate for a missing
 * count is limited by all of them together. With the limit of one choice the others would be free.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { costSoFar, settlementOf } from "../../../src/settle/charge.ts";
import type { AttemptFacts, Ending, MeasuredReply } from "../../../src/settle/meter.ts";
import type { ChargeTerms } from "../../../src/store/charge-terms.ts";
import type { Group, Route } from "../../../src/values/catalog.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const CHOICES = 3;
const LIMIT = 100;
const [ROUTE] = MODEL.routes as [Route];

const TERMS: ChargeTerms = {
  ...{ requestId: "choices" as RequestId, tag: "tag" as AccountTag, keyId: "key", model: MODEL },
  group: CATALOG.groups.get("money") as Group,
  tokensTaken: 10,
  terms: { inputTokens: 10, inputEstimate: 8, choices: CHOICES, tier: undefined, tools: [], options: [] },
  ...{ hold: nanoUsd(900_000_000n), outputMost: LIMIT, entitlement: undefined, unmetered: false },
  ...{ storeTimeMs: 0, catalogVersion: "1" },
};

/** A minute without output, at 150 tokens a second: more than was requested. */
const SILENT: MeasuredReply = {
  ...{ usage: undefined, final: false, silentMs: 60_000 },
  produced: { bytes: 0, tokens: 0, deltas: 0 },
};
const PACE = { thinks: "yes", hiddenPerS: 150, visibleFactor: 1 } as const;

const LEFT: Ending = {
  ...{ delivered: true, complete: false, route: ROUTE, cause: "client_gone" },
  ...{ measured: SILENT, pace: PACE },
};

function outputOf(memo: string): unknown {
  return JSON.parse(memo).output;
}

test("a stream that was cut is charged for the hidden output of all choices", () => {
  assert.equal(outputOf(settlementOf(TERMS, LEFT).ask.memo), CHOICES * LIMIT);
  assert.equal(costSoFar(TERMS, SILENT, { cause: "client_gone", pace: PACE }).usage.output, CHOICES * LIMIT);
});

/** A try that failed after its upstream had the request. */
function sent(outcome: string, written: Partial<AttemptFacts>): AttemptFacts {
  const facts = { status: undefined, bytesReceived: 0, sentToUpstream: true, refusedByUpstream: false };
  return { upstream: ROUTE.upstream, model: ROUTE.upstreamModel, outcome, ...facts, ...written };
}

test("a try without an answer costs the estimated output of all choices", () => {
  const nothing = { ...LEFT, delivered: false, route: undefined };
  const left = settlementOf(TERMS, {
    ...{ ...nothing, leftAllowance: nanoUsd(0n) },
    attempts: [sent("client_gone", { hiddenTokens: 9_000 })],
  });
  assert.equal(outputOf(left.ask.leftUnpaid?.memo ?? "{}"), CHOICES * LIMIT);
  const failed = settlementOf(TERMS, {
    ...{ ...nothing, cause: "upstream_timeout" },
    attempts: [sent("upstream_timeout", { bytesReceived: 40_000 })],
  });
  assert.deepEqual(
    failed.ask.attempts?.map(({ memo }) => outputOf(memo)),
    [CHOICES * LIMIT],
  );
});

test("a failed try costs the received output at four bytes a token, and the estimated hidden output", () => {
  const outcome = "upstream_timeout";
  const written = { bytesReceived: 41, hiddenTokens: 20.5 };
  const { ask } = settlementOf(TERMS, {
    ...{ ...LEFT, delivered: false, route: undefined, cause: outcome },
    attempts: [sent(outcome, written)],
  });
  assert.deepEqual(
    ask.attempts?.map(({ memo }) => outputOf(memo)),
    [11 + 21],
  );
});

test("the input of a try whose client disconnected is the higher estimate, that of a failed try the likely one", () => {
  const inputs = (outcome: string) => {
    const ending = { ...LEFT, delivered: false, route: undefined, cause: outcome, leftAllowance: nanoUsd(1n) };
    const { ask } = settlementOf(TERMS, { ...ending, attempts: [sent(outcome, {})] });
    return ask.costs?.map(({ tokens }) => tokens.input);
  };
  assert.deepEqual([inputs("client_gone"), inputs("upstream_timeout")], [[10], [8]]);
});

/** A final count. */
function counted(input: number, output: number): Ending {
  const usage = { ...NO_USAGE, input, output };
  return { ...LEFT, complete: true, cause: "complete", measured: { ...SILENT, usage, final: true, silentMs: 0 } };
}

test("the output of all choices counts against the tokens per minute and is no surprise", () => {
  const most = CHOICES * MODEL.maxOutputTokens;
  const whole = settlementOf({ ...TERMS, outputMost: MODEL.maxOutputTokens }, counted(MODEL.contextTokens, most));
  assert.equal(whole.ask.tokensUsed, MODEL.contextTokens + most);
  assert.deepEqual(whole.surprises, []);
  const above = settlementOf({ ...TERMS, outputMost: MODEL.maxOutputTokens }, counted(MODEL.contextTokens, most + 1));
  assert.equal(above.ask.tokensUsed, MODEL.contextTokens + most);
  assert.deepEqual(above.surprises, ["output_above_max"]);
  assert.deepEqual(settlementOf(TERMS, counted(1, CHOICES * LIMIT)).surprises, []);
  assert.deepEqual(settlementOf(TERMS, counted(1, CHOICES * LIMIT + 1)).surprises, ["output_above_limit"]);
});
