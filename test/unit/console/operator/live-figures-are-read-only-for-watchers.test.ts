/** Live figures: one reading per second for all watchers, none without a watcher, and a limited duration. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Duplex, Readable } from "node:stream";
import test from "node:test";
import type { LiveAnswer } from "../../../../src/console/answers/live.ts";
import { LiveFeed, WATCHERS_MAX } from "../../../../src/console/operator/live.ts";
import { figuresOf, type LiveFigures, liveMetrics } from "../../../../src/telemetry/live-figures.ts";
import { createMetrics } from "../../../../src/telemetry/metrics.ts";
import { summedSnapshot } from "../../../../src/telemetry/summed-metrics.ts";
import { HandClock } from "../../../e2e/protocol/whole/hand-clock.ts";

const NONE: LiveFigures = {
  requests: 0,
  refusals: new Map(),
  firstTokens: new Map(),
  spendUsd: new Map(),
  inFlight: 0,
  queued: 0,
  journalFill: 0,
  unsettled: 0,
};

/** A gateway whose figures a test sets. */
function world() {
  const clock = new HandClock();
  const state = { figures: NONE, readings: 0 };
  const live = new LiveFeed({
    clock,
    figures: async () => {
      state.readings++;
      return state.figures;
    },
  });
  return { clock, live, state };
}

async function snapshot(stream: Readable): Promise<LiveAnswer> {
  const [chunk] = await once(stream, "data");
  const [, json] = /^event: snapshot\ndata: (.*)\n\n$/.exec(String(chunk)) ?? [];
  assert.ok(json, String(chunk));
  return JSON.parse(json);
}

test("a watcher gets a snapshot at once and then one per second with the changes since", async () => {
  const { clock, live, state } = world();
  const stream = live.watch();
  const first = await snapshot(stream);
  assert.deepEqual([first.requests_per_second, first.window_seconds, first.first_token_p50_ms], [0, 0, null]);
  state.figures = {
    ...NONE,
    requests: 30,
    refusals: new Map([["insufficient_balance", 4]]),
    firstTokens: new Map([
      [0.5, 10],
      [1, 20],
      [Number.POSITIVE_INFINITY, 20],
    ]),
    spendUsd: new Map([
      ["big", 1.25],
      ["small", 0.000123],
      ["idle", 0],
    ]),
    inFlight: 2,
    journalFill: 0.25,
  };
  await clock.timerOf(1_000);
  const next = snapshot(stream);
  clock.advance(1_000);
  const { at: _, ...second } = await next;
  assert.deepEqual(second, {
    requests_per_second: 30,
    in_flight: 2,
    queued: 0,
    window_seconds: 1,
    requests: 30,
    first_tokens: 20,
    first_token_p50_ms: 500,
    first_token_p95_ms: 950,
    refusals: [{ cause: "insufficient_balance", requests: 4 }],
    spend: [
      { group: "big", usd: "1.25" },
      { group: "small", usd: "0.000123" },
    ],
    journal_fill: 0.25,
    unsettled: 0,
  });
  live.close();
});

test("all watchers share one reading; the last one to leave stops the readings, and the next one starts them again", async () => {
  const { clock, live, state } = world();
  const one = live.watch();
  await snapshot(one);
  const two = live.watch();
  assert.equal((await snapshot(two)).requests, 0, "the newest snapshot is sent at once");
  assert.equal(state.readings, 1);
  one.destroy();
  await once(one, "close");
  await clock.timerOf(1_000);
  const next = snapshot(two);
  clock.advance(1_000);
  await next;
  assert.equal(state.readings, 2);
  two.destroy();
  await once(two, "close");
  clock.advance(10_000);
  assert.equal(state.readings, 2);
  state.figures = { ...NONE, requests: 99 };
  assert.equal((await snapshot(live.watch())).requests, 0, "the figures from before the first watcher are not counted");
  live.close();
});

test("a page that is reloaded repeatedly during a reading causes no more than one reading per second", async () => {
  const clock = new HandClock();
  const asked: PromiseWithResolvers<LiveFigures>[] = [];
  const figures = () => {
    const reading = Promise.withResolvers<LiveFigures>();
    asked.push(reading);
    return reading.promise;
  };
  const live = new LiveFeed({ clock, figures });
  for (let n = 0; n < 3; n++) {
    const gone = live.watch();
    gone.destroy();
    await once(gone, "close");
  }
  const begun = snapshot(live.watch());
  for (const { resolve } of asked) resolve(NONE);
  await begun;
  await clock.timerOf(1_000);
  const before = asked.length;
  clock.advance(1_000);
  assert.equal(asked.length - before, 1);
  live.close();
});

test("a stream ends after the requested time and with the gateway, and above the maximum number of streams a new one is refused", async () => {
  const { live } = world();
  const short = live.watch(1);
  short.resume();
  await once(short, "end");
  const streams = Array.from({ length: WATCHERS_MAX }, () => live.watch().resume());
  assert.throws(() => live.watch(), { status: 429, code: "too_many_watchers" });
  const ended = Promise.all(streams.map((stream) => once(stream, "end")));
  live.close();
  await ended;
  live.watch().destroy();
});

test("a watcher that does not read costs a bounded amount of memory", async () => {
  const { clock, live, state } = world();
  state.figures = { ...NONE, refusals: new Map(Array.from({ length: 1_200 }, (_, at) => [`cause_${at}`, at])) };
  let timer = clock.timerOf(1_000);
  const lazy = live.watch();
  const keen = live.watch();
  await snapshot(keen);
  for (let second = 0; second < 50; second++) {
    state.figures = { ...state.figures, refusals: new Map([...state.figures.refusals].map(([c, n]) => [c, n + 1])) };
    await timer;
    timer = clock.nextTimerOf(1_000);
    const next = snapshot(keen);
    clock.advance(1_000);
    await next;
  }
  const unread = lazy.readableLength + (lazy as Duplex).writableLength;
  assert.ok(unread > 0 && unread < 200_000, String(unread));
  live.close();
});

test("figures are computed from the metrics of one process, and from the sum of several", async () => {
  const metrics = createMetrics();
  const request = { protocol: "chat", model: "m", group: "big" };
  metrics.requests.inc({ ...request, status: "200", cause: "none" }, 3);
  metrics.requests.inc({ ...request, status: "403", cause: "insufficient_balance" }, 2);
  metrics.firstToken.observe({ ...request, upstream: "u" }, 0.3);
  metrics.addUsd(metrics.spend, { group: "big", model: "m" }, 1_500_000_000n);
  metrics.inFlight.inc({ protocol: "chat" });
  metrics.journalFill.set(0.5);
  const own = liveMetrics(await metrics.snapshot());
  const one = figuresOf(own);
  assert.deepEqual([one.requests, one.refusals.get("insufficient_balance"), one.inFlight], [5, 2, 1]);
  assert.deepEqual([one.spendUsd.get("big"), one.journalFill], [1.5, 0.5]);
  assert.deepEqual([one.firstTokens.get(0.2), one.firstTokens.get(0.35), one.firstTokens.get(Infinity)], [0, 1, 1]);
  const both = figuresOf(await summedSnapshot([own, own]));
  assert.deepEqual([both.requests, both.spendUsd.get("big"), both.journalFill], [10, 3, 0.5]);
  assert.equal(both.firstTokens.get(Infinity), 2);
});
