/**
 * docs/failure-model.md row B7: the redirections of a half-moved slot may take longer than a slow answer, and then the
 * account is refused. This says nothing about the speed of the server, so its other accounts are served.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { Breakers } from "../../../src/store/middleware/breakers.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { ManualClock } from "../settle/rig.ts";
import { tagOf } from "./asks.ts";

const STUCK = tagOf("Stuck");
const OTHER = tagOf("Other");
/** An answer is slow from 400 ms on. */
const SLOW_MS = 600;
/** The breaker looks back at so many calls. */
const WINDOW = 20;

const refused = () => new StoreError("unavailable", "the slot is half-moved", { outcome: "refused" });

/** A store of one server. @param probe what the breaker's probes of it give. */
function bench(probe: () => Promise<never>) {
  const clock = new ManualClock();
  const breakers = new Breakers({
    store: { admit: probe, shardOf: () => "a" },
    clock,
    random: () => 1,
    metrics: createMetrics(),
    log: createLog({ level: "silent" }),
  });
  /** Calls one after the other, each of which ends slowly. */
  const slowly = async (calls: number, end: (answer: PromiseWithResolvers<string>) => void) => {
    for (let i = 0; i < calls; i++) {
      const answer = Promise.withResolvers<string>();
      const call = breakers.request(STUCK, () => answer.promise).catch((error: unknown) => error);
      await clock.advance(SLOW_MS);
      end(answer);
      await call;
    }
  };
  const ofOther = () => breakers.request(OTHER, async () => "served");
  return { clock, breakers, slowly, ofOther };
}

test("slow refusals of one account leave the breaker of its server closed", async () => {
  const { breakers, slowly, ofOther } = bench(() => Promise.reject(refused()));
  await slowly(2 * WINDOW, (answer) => answer.reject(refused()));
  assert.equal(await ofOther(), "served");
  breakers.stop();
});

test("slow answers open it, and a probe that is refused slowly closes it", async () => {
  const { clock, breakers, slowly, ofOther } = bench(async () => {
    clock.nowMs += SLOW_MS;
    throw refused();
  });
  await slowly(WINDOW, (answer) => answer.resolve("late"));
  await assert.rejects(ofOther(), { outcome: "unsent" });
  await clock.advance(250);
  assert.equal(await ofOther(), "served");
  breakers.stop();
});
