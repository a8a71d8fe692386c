/**
 * ARCHITECTURE.md promise 3: when the upstream or the gateway cuts a stream, its client pays what was seen. Earlier, with a
 * reasoning model, the client also paid the possibly hidden output when a defect of the gateway or the end of a drain cut the
 * stream.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { costSoFar, settlementOf } from "../../../src/settle/charge.ts";
import type { Ending, MeasuredReply } from "../../../src/settle/meter.ts";
import type { ChargeTerms } from "../../../src/store/charge-terms.ts";
import type { Group, Route } from "../../../src/values/catalog.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";

const TERMS: ChargeTerms = {
  ...{ requestId: "cut" as RequestId, tag: "cut" as AccountTag, keyId: "key", model: MODEL },
  group: CATALOG.groups.get("money") as Group,
  tokensTaken: 10,
  terms: { inputTokens: 10, inputEstimate: 8, choices: 1, tier: undefined, tools: [], options: [] },
  ...{ hold: nanoUsd(900_000_000n), outputMost: 5_000, entitlement: undefined, unmetered: false },
  ...{ storeTimeMs: 0, catalogVersion: "1" },
};

/** One visible token, and ten silent seconds in each of which 150 tokens may have been hidden. */
const MEASURED: MeasuredReply = {
  ...{ usage: undefined, final: false, silentMs: 10_000 },
  produced: { bytes: 4, tokens: 1, deltas: 1 },
};

function outputCharged(cause: string, thinks: "yes" | "no", complete = false): unknown {
  const ending: Ending = {
    ...{ delivered: true, complete, cause, measured: MEASURED },
    ...{ route: MODEL.routes[0] as Route, pace: { thinks, hiddenPerS: 150, visibleFactor: 1 } },
  };
  return JSON.parse(settlementOf(TERMS, ending).ask.memo).output;
}

test("a stream that the gateway or the upstream cut is charged as seen, whatever the model may have hidden", () => {
  const causes = ["internal", "draining", "orphaned", "upstream_invalid", "upstream_timeout", "upstream_unavailable"];
  for (const cause of causes) assert.deepEqual([cause, outputCharged(cause, "yes")], [cause, 1]);
});

test("a stream that its client left, that funds cut or that ended normally is charged with possibly hidden output", () => {
  assert.deepEqual([outputCharged("client_gone", "yes"), outputCharged("client_gone", "no")], [1_501, 1]);
  assert.deepEqual([outputCharged("brake", "yes"), outputCharged("brake", "no")], [1_501, 1]);
  assert.deepEqual([outputCharged("complete", "yes", true), outputCharged("complete", "no", true)], [1_501, 1]);
});

test("the input is the higher estimate if the client disconnected or hit a stop string, and else the likely one", () => {
  const route = MODEL.routes[0] as Route;
  const inputCharged = (cause: string, { complete = false, stopped = false } = {}) => {
    const ending: Ending = { delivered: true, complete, stopped, cause, measured: MEASURED, route };
    return JSON.parse(settlementOf(TERMS, ending).ask.memo).input;
  };
  assert.deepEqual([inputCharged("client_gone"), inputCharged("upstream_invalid", { stopped: true })], [10, 10]);
  const others = ["internal", "draining", "orphaned", "brake", "upstream_invalid"].map((cause) => inputCharged(cause));
  assert.deepEqual(others, [8, 8, 8, 8, 8]);
  // A client that disconnects after everything has arrived has not left the stream.
  assert.deepEqual(
    [inputCharged("client_gone", { complete: true }), inputCharged("complete", { complete: true })],
    [8, 8],
  );
});

test("a hold is extended for possibly hidden output, since funds have to pay for it", () => {
  const pace = { thinks: "yes", hiddenPerS: 150, visibleFactor: 1 } as const;
  assert.equal(costSoFar(TERMS, MEASURED, { cause: "brake", pace }).usage.output, 1_501);
});
