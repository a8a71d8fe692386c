/**
 * How much hidden output a disconnected client is charged for depends on how long its stream was silent. The time of an
 * earlier, failed attempt does not count (ARCHITECTURE.md promise 3; src/request/answer.ts).
 */
import assert from "node:assert/strict";
import test from "node:test";
import type { Permit } from "../../../src/admit/permit.ts";
import type { Answered } from "../../../src/dispatch/ask.ts";
import { relayStreamed } from "../../../src/request/answer.ts";
import type { AttemptConversion } from "../../../src/request/conversion.ts";
import type { PipelineParts, Run } from "../../../src/request/run.ts";
import type { SeenCounts } from "../../../src/request/silence.ts";
import { FakeClock } from "../dispatch/rig.ts";

test("twenty seconds at another upstream do not count as this one's silence", async () => {
  const clock = new FakeClock();
  const silentMs: number[] = [];
  let leave = () => {};
  const observed = {
    paceOf: () => ({ thinks: "no", hiddenPerS: 0, visibleFactor: 1 }),
    drawCheck: (counts: SeenCounts) => void silentMs.push(counts.silentMs),
  };
  const parts = {
    ...{ clock, observed, cut: new AbortController().signal },
    settings: () => ({ heartbeatMs: 60_000, upstreams: new Map() }),
  } as unknown as PipelineParts;
  const reply = {
    gone: false,
    open() {},
    write: () => true,
    end() {},
    destroy() {},
    onDrain() {},
    onGone: (task: () => void) => (leave = task),
  };
  const record = { answered() {}, streamEnded() {} };
  const run = { protocol: "chat", request: { forgetBody() {} }, reply, record, asksToThink: false } as unknown as Run;
  const permit = {
    ...{ growth: undefined, limits: {}, group: {}, unmetered: false },
    terms: { tools: [], inputTokens: 0, inputEstimate: 0, hasFiles: false },
  } as unknown as Permit;
  const produced = { bytes: 0, tokens: 0, deltas: 0 };
  const converter = { fault: undefined, draining: false, counts: () => ({ usage: undefined, final: false, produced }) };
  const startedAtMs = clock.monotonicMs();
  const answered = {
    route: { upstream: "second", capabilities: { thinking: "none" } },
    attempts: [{ startedAtMs: startedAtMs - 20_000 }, { startedAtMs }],
    body: { consume() {}, abort() {}, pause() {}, resume() {}, discardRest() {} },
    token: { converter, first: [], exchange: {} },
  } as unknown as Answered<AttemptConversion>;
  const ended = relayStreamed(run, permit, answered, parts);
  clock.advance(5_000);
  leave();
  await ended;
  // The first second never counts.
  assert.deepEqual(silentMs, [4_000]);
});
