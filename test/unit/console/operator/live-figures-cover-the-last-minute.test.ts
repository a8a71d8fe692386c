/** A stream of live figures lasts a minute, and its figures are about the minute before. */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Readable } from "node:stream";
import test from "node:test";
import type { LiveAnswer } from "../../../../src/console/answers/live.ts";
import { LiveFeed } from "../../../../src/console/operator/live.ts";
import type { LiveFigures } from "../../../../src/telemetry/live-figures.ts";
import { HandClock } from "../../../e2e/protocol/whole/hand-clock.ts";

function world() {
  const clock = new HandClock();
  const state = { requests: 0, inFlight: 0, firstTokens: new Map<number, number>() };
  const live = new LiveFeed({
    clock,
    figures: async (): Promise<LiveFigures> => ({
      ...state,
      ...{ refusals: new Map(), spendUsd: new Map(), queued: 0, journalFill: 0, unsettled: 0 },
    }),
  });
  return { clock, live, state };
}

const read = (chunk: unknown): LiveAnswer => JSON.parse(String(chunk).slice("event: snapshot\ndata: ".length));

async function snapshot(stream: Readable): Promise<LiveAnswer> {
  const [chunk] = await once(stream, "data");
  return read(chunk);
}

test("a stream ends after 60 snapshots, also if more are asked for, and no window is longer than a minute", async () => {
  const { clock, live, state } = world();
  const first = live.watch(600);
  let taken = 0;
  first.on("data", () => taken++);
  const ended = once(first, "end");
  let newest: LiveAnswer | undefined;
  await clock.timerOf(1_000);
  for (let second = 1; second <= 75; second++) {
    if (second === 40) live.watch().on("data", (chunk) => (newest = read(chunk)));
    state.requests += 2;
    const again = clock.nextTimerOf(1_000);
    clock.advance(1_000);
    await again;
  }
  assert.equal(taken, 60);
  await ended;
  assert.deepEqual([newest?.window_seconds, newest?.requests], [60, 120]);
  live.close();
});

test("after a pause without watchers, nothing of what was shown before is sent", async () => {
  const { live, state } = world();
  const first = live.watch();
  await snapshot(first);
  first.destroy();
  await once(first, "close");
  state.inFlight = 7;
  assert.equal((await snapshot(live.watch())).in_flight, 7);
  live.close();
});

test("a first token later than the last bound is shown with that bound", async () => {
  const { clock, live, state } = world();
  const stream = live.watch();
  await snapshot(stream);
  state.firstTokens = new Map([
    [60, 1],
    [120, 2],
    [Number.POSITIVE_INFINITY, 10],
  ]);
  await clock.timerOf(1_000);
  const next = snapshot(stream);
  clock.advance(1_000);
  const { first_token_p50_ms, first_token_p95_ms } = await next;
  assert.deepEqual([first_token_p50_ms, first_token_p95_ms], [120_000, 120_000]);
  live.close();
});
