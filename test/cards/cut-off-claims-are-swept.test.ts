// The gateway finishes redemptions that somebody else's crash cut off: at its start and every minute.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sweepClaims } from "../../src/claim-sweeper.ts";
import { StoreError } from "../../src/store/contract.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { HandClock } from "../whole/hand-clock.ts";

test("a sweep at the start, one each minute, one that fails is no end, and none after the stop", async () => {
  const clock = new HandClock();
  const lines: string[] = [];
  const log = createLog({ level: "warn", destination: { write: (line) => void lines.push(line) } });
  const answers: (number | Error)[] = [2, new StoreError("unavailable", "away"), 0];
  let sweeps = 0;
  const store = {
    async finishClaims(limit: number): Promise<number> {
      assert.ok(limit > 0);
      const answer = answers[sweeps++] ?? 0;
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const sweeper = sweepClaims({ store, clock, log });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  await settled();
  assert.equal(sweeps, 1);
  assert.match(lines[0] ?? "", /"codes":2/);
  clock.advance(59_999);
  assert.equal(sweeps, 1);
  clock.advance(1);
  await settled();
  assert.equal(sweeps, 2);
  assert.match(lines[1] ?? "", /wait for the store/);
  clock.advance(60_000);
  await settled();
  assert.equal(sweeps, 3);
  await sweeper.stop();
  clock.advance(600_000);
  assert.equal(sweeps, 3);
  assert.equal(lines.length, 2, "a sweep that finds nothing says nothing");
});
