/**
 * The figures are those of several processes. While one of them ends, a reading may fail, and a sum may be smaller than
 * before.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Readable } from "node:stream";
import test from "node:test";
import type { LiveAnswer } from "../../../../src/console/answers/live.ts";
import { LiveFeed } from "../../../../src/console/operator/live.ts";
import type { LiveFigures } from "../../../../src/telemetry/live-figures.ts";
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

async function snapshot(stream: Readable): Promise<LiveAnswer> {
  const [chunk] = await once(stream, "data");
  return JSON.parse(String(chunk).slice("event: snapshot\ndata: ".length));
}

/** A feed of these readings, one per second. */
function fed(readings: readonly (LiveFigures | Error)[]) {
  const clock = new HandClock();
  const left = [...readings];
  const live = new LiveFeed({
    clock,
    async figures() {
      const next = left.shift() ?? NONE;
      if (next instanceof Error) throw next;
      return next;
    },
  });
  const second = async () => {
    await clock.timerOf(1_000);
    const again = clock.nextTimerOf(1_000);
    clock.advance(1_000);
    return again;
  };
  return { live, second };
}

test("a reading that fails is left out, and the next one is shown", async () => {
  const { live, second } = fed([{ ...NONE, inFlight: 1 }, new Error("a worker has ended"), { ...NONE, inFlight: 3 }]);
  const stream = live.watch();
  assert.equal((await snapshot(stream)).in_flight, 1);
  await second();
  const next = snapshot(stream);
  await second();
  assert.equal((await next).in_flight, 3);
  live.close();
});

test("a sum that is smaller than before counts as no change", async () => {
  const before = { ...NONE, requests: 30, refusals: new Map([["overloaded", 9]]), spendUsd: new Map([["big", 2]]) };
  const after = { ...NONE, requests: 20, refusals: new Map([["overloaded", 4]]), spendUsd: new Map([["big", 1]]) };
  const { live, second } = fed([before, after]);
  const stream = live.watch();
  await snapshot(stream);
  const next = snapshot(stream);
  await second();
  const { requests, requests_per_second, refusals, spend } = await next;
  assert.deepEqual([requests, requests_per_second, refusals, spend], [0, 0, [], []]);
  live.close();
});
