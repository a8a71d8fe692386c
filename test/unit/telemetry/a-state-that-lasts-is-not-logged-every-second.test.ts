/** What is asked or tried every second is logged when it changes: a store that is away or unfit, a wait that goes on. */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { watchHealth } from "../../../src/store/upkeep/health.ts";
import { type Log, sparingly } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { HandClock } from "../../e2e/protocol/whole/hand-clock.ts";

test("a reason is told when it is another one, and once a minute", () => {
  const clock = new HandClock();
  const told: string[] = [];
  const tell = sparingly(clock, (reason) => told.push(reason));
  for (let second = 0; second < 61; second++) {
    tell("older");
    clock.advance(1_000);
  }
  assert.deepEqual(told, ["older", "older"]);
  tell("away");
  tell("away");
  tell("older");
  assert.deepEqual(told.slice(2), ["away", "older"]);
});

test("a store is told of whenever it becomes unfit, away or well, and not in between", async () => {
  const clock = new HandClock();
  const lines: string[] = [];
  const line = (facts: { reason?: string }, msg: string) =>
    lines.push([msg, ...(facts.reason ? [facts.reason] : [])].join(": "));
  const log = { info: line, warn: line, error: line } as unknown as Log;
  let fault: Error | undefined;
  const check = async () => {
    if (fault) throw fault;
  };
  const health = watchHealth({ store: { check }, clock, metrics: createMetrics(), log });
  const unfit = (why: string) => new StoreError("unavailable", why, { outcome: "refused" });
  const faults = [
    unfit("may not ZREM"),
    new Error("refused"),
    new Error("timeout"),
    unfit("may not ZREM"),
    unfit("evicts"),
    undefined,
  ];
  for (fault of faults) {
    for (let second = 0; second < 3; second++) {
      clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  health.stop();
  assert.deepEqual(lines, [
    "the store is not fit for use: may not ZREM",
    "the store does not answer: Error: refused",
    "the store is not fit for use: may not ZREM",
    "the store is not fit for use: evicts",
    "the store answers again",
  ]);
});
