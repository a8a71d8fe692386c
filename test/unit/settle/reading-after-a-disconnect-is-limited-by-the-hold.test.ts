/**
 * When a client disconnects, its stream is read on for the final count, within limits (docs/decisions/what-a-disconnect-costs.md):
 * the bytes that all its choices may take, the amount in doubt, and the current hold, which is larger than at admission if it
 * was extended. If reading stops too early, the count never arrives and hidden reasoning is not paid for.
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import { disconnectPlanOf, ReadAfterDisconnect } from "../../../src/request/disconnect.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import type { SeenCounts } from "../../../src/request/silence.ts";
import { Observed } from "../../../src/settle/observed.ts";
import type { Group, Route } from "../../../src/values/catalog.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import { NO_USAGE } from "../../../src/values/tokens/usage.ts";
import { CATALOG, MODEL } from "../../endurance/simulation/catalog.ts";
import { ManualClock } from "./rig.ts";

const [ROUTE] = MODEL.routes as [Route];
const CHOICES = 3;
const LIMIT = 100;
const GRACE_MS = 10_000;

const PERMIT = {
  ...{ group: CATALOG.groups.get("money") as Group, model: MODEL, tag: "tag", unmetered: false, outputMost: LIMIT },
  tokensTaken: 0,
  terms: { inputTokens: 0, inputEstimate: 0, choices: CHOICES, tier: undefined, tools: [], options: [] },
  // 200 tokens at 5.000011 nano-dollars.
  hold: nanoUsd(1_000n),
} as unknown as Permit;

/** Output that was seen, and the time without output. */
function seen(tokens: number, silentMs = 0): SeenCounts {
  return { usage: undefined, final: false, produced: { bytes: tokens * 4, tokens, deltas: tokens }, silentMs };
}

function leave(now: { readonly permit?: Permit; readonly counts?: SeenCounts; readonly drains?: boolean } = {}) {
  const { permit, counts = seen(0), drains = false } = now;
  const upstream = { onClientGone: drains ? "drain" : "abort", clientGoneGraceMs: GRACE_MS };
  const parts = {
    observed: new Observed(),
    settings: () => ({ upstreams: new Map([[ROUTE.upstream, upstream]]) }),
    disconnected: { add: () => () => {} },
  } as unknown as PipelineParts;
  const run = { asksToThink: false, permit } as unknown as Run;
  const leaving = disconnectPlanOf(run, PERMIT, { tier: undefined, route: ROUTE, counts, delivered: true }, parts);
  assert.ok(leaving);
  return leaving;
}

test("the upstream may send a limited number of bytes for each token of each choice", () => {
  const clock = new ManualClock();
  const most = CHOICES * LIMIT * 4_096;
  const leaving = leave({ drains: true });
  assert.equal(leaving.bytesMax, most);
  const readOn = new ReadAfterDisconnect(leaving, seen(0), clock, () => {});
  const running = { ended: false, fault: undefined };
  assert.equal(readOn.isOver(most - 1, running, seen(0)), false);
  assert.equal(readOn.isOver(1, running, seen(0)), false);
  assert.equal(readOn.isOver(1, running, seen(0)), true);
  readOn.stop();
});

test("reading on is covered by the current hold, not by the first one", () => {
  const first = leave();
  assert.deepEqual([first.covers(seen(199)), first.covers(seen(200))], [true, false]);
  const grown = leave({ permit: { ...PERMIT, hold: nanoUsd(1_250n) } });
  assert.deepEqual([grown.covers(seen(200)), grown.covers(seen(249)), grown.covers(seen(250))], [true, true, false]);
  const shrunk = leave({ permit: { ...PERMIT, hold: nanoUsd(500n) } });
  assert.deepEqual([shrunk.covers(seen(99)), shrunk.covers(seen(100))], [true, false]);
  const card = leave({ permit: { ...PERMIT, hold: nanoUsd(0n), unmetered: true } });
  assert.equal(card.covers(seen(100_000)), true);
});

test("a final count that has arrived decides whether the hold covers it", () => {
  const usage = { ...NO_USAGE, input: 1, output: 150 };
  const { covers } = leave();
  assert.equal(covers({ ...seen(10), usage, final: true }), true);
  assert.equal(covers({ ...seen(10), usage: { ...usage, output: 250 }, final: true }), false);
});

test("reading on costs no more than the amount in doubt: silent time, shown output, and output that may be hidden meanwhile", async () => {
  const clock = new ManualClock();
  // 150 tokens for each second of 2.5 s, and half a second that is always in doubt.
  const left = seen(10, 2_500);
  const leaving = leave({ counts: left });
  assert.deepEqual(leaving.doubt, { tokens: 450, perS: 150 });
  let ended = 0;
  const readOn = new ReadAfterDisconnect(leaving, left, clock, () => ended++);
  const running = { ended: false, fault: undefined };
  assert.equal(readOn.isOver(1, running, seen(10 + 149)), false);
  // 149 tokens are shown; two seconds may hide 300 more, one less than the amount in doubt.
  await clock.advance(2_000);
  assert.equal(ended, 0);
  await clock.advance(250);
  assert.equal(ended, 1);
  readOn.stop();
  assert.equal(leave({ drains: true }).doubt, undefined);
});

test("only the silence since the last token may hide output, and a stream that has ended no longer counts for the account", () => {
  const clock = new ManualClock();
  let running = 0;
  const begun = () => {
    running++;
    return () => void running--;
  };
  const leaving = { ...leave(), forMs: 60_000, doubt: { tokens: 100, perS: 10 }, covers: () => true, begun };
  const readOn = new ReadAfterDisconnect(leaving, seen(0), clock, () => {});
  const state = { ended: false, fault: undefined };
  clock.nowMs += 9_000;
  assert.equal(readOn.isOver(1, state, seen(1)), false);
  clock.nowMs += 9_000;
  assert.equal(readOn.isOver(1, state, seen(1)), false);
  clock.nowMs += 1_000;
  assert.equal(readOn.isOver(1, state, seen(1)), true);
  assert.equal(running, 1);
  readOn.stop();
  assert.equal(running, 0);
});
