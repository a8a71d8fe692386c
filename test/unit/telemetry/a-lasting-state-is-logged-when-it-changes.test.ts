/**
 * A state that is checked every second is logged when it changes: a store that is unreachable or unfit, or a long wait.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { watchHealth } from "../../../src/store/upkeep/health.ts";
import { OutageLog } from "../../../src/store/upkeep/outage-log.ts";
import { type Log, withoutRepeats } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { HandClock } from "../../e2e/protocol/whole/hand-clock.ts";

test("a reason is logged when it changes, and once a minute", () => {
  const clock = new HandClock();
  const told: string[] = [];
  const tell = withoutRepeats(clock, (reason) => told.push(reason));
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

const AWAY = "the store does not answer; it is checked every second, and new requests get 503 until it can be used";

test("an unreachable store is logged once with the reason of its connections, again after ten minutes, and at its end", () => {
  const clock = new HandClock();
  const lines: string[] = [];
  const line = (facts: { reason?: string; away_s?: number }, msg: string) =>
    lines.push(`${msg}: ${facts.reason ?? ""} ${facts.away_s ?? ""}`);
  const away = new OutageLog(clock, { info: line, warn: line } as unknown as Log);
  for (let second = 0; second < 601; second++) {
    for (let attempt = 0; attempt < 3; attempt++) away.connectionFailed("connect ECONNREFUSED 127.0.0.1:6379");
    away.unreachable(new Error("Redis did not answer: no reply within 200 ms"));
    clock.advance(1_000);
  }
  away.connectionFailed("connect ECONNREFUSED 127.0.0.1:6379");
  away.answers();
  assert.deepEqual(lines, [
    `${AWAY}: connect ECONNREFUSED 127.0.0.1:6379 0`,
    "still: the store does not answer: connect ECONNREFUSED 127.0.0.1:6379 600",
    "the store answers again:  601",
  ]);
});

test("a failed connection to one server of a store that answers is logged at once, and again after ten minutes", () => {
  const clock = new HandClock();
  const told: string[] = [];
  const warn = ({ reason }: { reason?: string }, msg: string) => told.push(`${msg}: ${reason}`);
  const away = new OutageLog(clock, { warn } as unknown as Log);
  for (let second = 0; second < 601; second++) {
    away.connectionFailed("connect ECONNREFUSED 127.0.0.1:7001");
    away.answers();
    clock.advance(1_000);
  }
  away.connectionFailed("read ECONNRESET");
  away.answers();
  const words = "a connection to the store failed; the store answers";
  const one = `${words}: connect ECONNREFUSED 127.0.0.1:7001`;
  assert.deepEqual(told, [one, one, `${words}: read ECONNRESET`]);
});

test("each change of a store to unfit, unreachable or fit is logged once", async () => {
  const clock = new HandClock();
  const lines: string[] = [];
  const line = (facts: { reason?: string }, msg: string) =>
    lines.push([msg, ...(facts.reason ? [facts.reason] : [])].join(": "));
  const log = { info: line, warn: line, error: line } as unknown as Log;
  let fault: Error | undefined;
  const check = async () => {
    if (fault) throw fault;
  };
  const away = new OutageLog(clock, log);
  const health = watchHealth({
    store: { check },
    hasAnswered: true,
    clock,
    metrics: createMetrics(),
    log,
    outages: away,
  });
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
    `${AWAY}: refused`,
    "the store answers again",
    "the store is not fit for use: may not ZREM",
    "the store is not fit for use: evicts",
    "the store is fit for use again",
  ]);
});
