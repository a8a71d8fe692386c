/**
 * Invariant 28: a gateway is ready while its store answers, and for five seconds after the last answer. A gateway whose
 * store has never answered is not ready.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { type Store, StoreError } from "../../../src/store/contract.ts";
import { watchHealth } from "../../../src/store/upkeep/health.ts";
import { OutageLog } from "../../../src/store/upkeep/outage-log.ts";
import type { Log } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { HandClock } from "../../e2e/protocol/whole/hand-clock.ts";

const AWAY = new Error("no reply within 200 ms");
const NO_ANSWER = "the store does not answer";

/** A watched store whose answer is `fault`, or that it is well. */
function watched({ hasAnswered = true } = {}) {
  const clock = new HandClock();
  const metrics = createMetrics();
  const silent = () => undefined;
  const log = { info: silent, warn: silent, error: silent } as unknown as Log;
  const state: { fault: Error | undefined; checks: number } = { fault: undefined, checks: 0 };
  const store: Pick<Store, "check"> = {
    check: async () => {
      state.checks += 1;
      if (state.fault) throw state.fault;
    },
  };
  const health = watchHealth({ store, hasAnswered, clock, metrics, log, outages: new OutageLog(clock, log) });
  return {
    state,
    health,
    /** Passes so many seconds, each with its check. */
    async pass(seconds: number): Promise<void> {
      for (let second = 0; second < seconds; second++) {
        clock.advance(1_000);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
    up: async () => (await metrics.storeUp.get()).values[0]?.value,
  };
}

test("the gateway becomes unready five seconds after the first check without an answer, and ready with the next answer", async () => {
  const { state, health, pass } = watched();
  state.fault = AWAY;
  await pass(5);
  assert.deepEqual(health.reasons(), []);
  await pass(1);
  assert.deepEqual(health.reasons(), [NO_ANSWER]);
  await pass(60);
  assert.deepEqual(health.reasons(), [NO_ANSWER]);
  state.fault = undefined;
  await pass(1);
  assert.deepEqual(health.reasons(), []);
});

test("outages of less than five seconds do not add up", async () => {
  const { state, health, pass } = watched();
  for (let outage = 0; outage < 3; outage++) {
    state.fault = AWAY;
    await pass(4);
    assert.deepEqual(health.reasons(), []);
    state.fault = undefined;
    await pass(1);
  }
});

test("a gateway whose store has never answered is unready from the start, until the first answer", async () => {
  const { state, health, pass, up } = watched({ hasAnswered: false });
  assert.deepEqual([health.reasons(), await up()], [[NO_ANSWER], 0]);
  state.fault = AWAY;
  await pass(1);
  assert.deepEqual(health.reasons(), [NO_ANSWER]);
  state.fault = undefined;
  await pass(1);
  assert.deepEqual([health.reasons(), await up()], [[], 1]);
});

test("a store that answers with a temporary fault is named with that fault", async () => {
  const { state, health, pass } = watched();
  state.fault = new StoreError("unavailable", "Redis is loading its data");
  await pass(6);
  assert.deepEqual(health.reasons(), ["the store cannot be used now: Redis is loading its data"]);
});

test("the metric shows at once what each check has found", async () => {
  const { state, pass, up } = watched();
  const shown = [await up()];
  for (const fault of [undefined, AWAY, undefined]) {
    state.fault = fault;
    await pass(1);
    shown.push(await up());
  }
  assert.deepEqual(shown, [1, 1, 0, 1]);
});

test("a check that ends after the stop starts no other", async () => {
  const { state, health, pass } = watched();
  const passed = pass(1);
  health.stop();
  await passed;
  await pass(3);
  assert.equal(state.checks, 1);
});
