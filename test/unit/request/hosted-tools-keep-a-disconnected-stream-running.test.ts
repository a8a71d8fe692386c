/**
 * docs/decisions/what-a-disconnect-costs.md: what a server's own tools found is only in its last count. If the request
 * offered such a tool, the upstream is therefore read on after the client disconnects, even if the model is known to
 * show all it writes.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { disconnectPlanOf } from "../../../src/request/disconnect.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";

const GRACE_MS = 10_000;
const COUNTS = { usage: undefined, final: false, produced: { bytes: 4, tokens: 1, deltas: 1 }, silentMs: 0 };

function leave(
  tools: readonly string[],
  {
    delivered = true,
    inputTokens = 100,
    hasFiles = false,
    input = 0,
    unmetered = false,
    isChecked = false,
    readsAgain = false,
    stateful = false,
    graceMs = GRACE_MS,
  } = {},
) {
  const admitted = {
    ...{ outputMost: 100, unmetered },
    terms: { choices: 1, tools, inputTokens, inputEstimate: 100, hasFiles },
  } as unknown as Permit;
  const upstreams = new Map([["east", { onClientGone: "stop", clientGoneGraceMs: graceMs }]]);
  const pace = { thinks: "no", hiddenPerS: 100, visibleFactor: 1 };
  const observed = { paceOf: () => pace, drawCheck: () => isChecked };
  const parts = { settings: () => ({ upstreams }), observed } as unknown as PipelineParts;
  const route = { upstream: "east", capabilities: { thinking: "none" }, stateful };
  const counts = { ...COUNTS, usage: input === 0 ? undefined : { ...NO_USAGE, input } };
  const left = { route, tier: undefined, counts, delivered } as unknown as Parameters<typeof disconnectPlanOf>[2];
  return disconnectPlanOf({ asksToThink: false, readsAgain } as Run, admitted, left, parts);
}

test("without a hosted tool the stream is stopped, with one it is read on for the whole grace period", () => {
  assert.equal(leave([]), undefined);
  const leaving = leave(["web_search"]);
  assert.deepEqual([leaving?.forMs, leaving?.doubt], [GRACE_MS, undefined]);
});

test("it is read on if the input may be much longer than estimated, unless it is counted already", () => {
  assert.equal(leave([], { inputTokens: 10_100 }), undefined);
  assert.equal(leave([], { inputTokens: 10_101 })?.forMs, GRACE_MS);
  assert.equal(leave([], { inputTokens: 10_101, input: 9 }), undefined);
});

test("with a file it is read on to its end", () => {
  const leaving = leave([], { hasFiles: true });
  assert.deepEqual([leaving?.forMs, leaving?.doubt], [Number.POSITIVE_INFINITY, undefined]);
  assert.equal(leave([], { hasFiles: true, input: 9 }), undefined);
  assert.equal(leave([], { hasFiles: true, unmetered: true }), undefined);
});

test("an answer that its server keeps and its client can retrieve later is read on to its end", () => {
  const leaving = leave([], { readsAgain: true, stateful: true });
  assert.deepEqual([leaving?.forMs, leaving?.doubt], [Number.POSITIVE_INFINITY, undefined]);
  assert.equal(leave([], { readsAgain: true }), undefined);
  assert.equal(leave([], { stateful: true }), undefined);
  assert.equal(leave([], { readsAgain: true, stateful: true, unmetered: true }), undefined);
});

test("without a grace period only an answer that the client can retrieve later is read on", () => {
  assert.equal(leave(["web_search"], { graceMs: 0, hasFiles: true }), undefined);
  assert.equal(leave([], { graceMs: 0, readsAgain: true, stateful: true })?.forMs, Number.POSITIVE_INFINITY);
});

test("a stream drawn for a check is read on for as long as the possible difference is worth it, if it is charged", () => {
  const leaving = leave([], { isChecked: true });
  assert.deepEqual([leaving?.forMs, leaving?.doubt], [GRACE_MS, { tokens: 50, perS: 100 }]);
  assert.equal(leave([], { isChecked: true, unmetered: true }), undefined);
  assert.equal(leave([], { isChecked: true, delivered: false }), undefined);
});

test("a stream of which nothing was delivered is not charged and not read on", () => {
  assert.equal(leave(["web_search"], { delivered: false }), undefined);
});
