/**
 * 512 requests and 64 settlements may wait for one server of the store. Each that ends, with or without an answer, releases its
 * slot; a leaked slot would after a day make a gateway that refuses everything (docs/failure-model.md row B4).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { StoreError } from "../../../src/store/contract.ts";
import { Breakers } from "../../../src/store/middleware/breakers.ts";
import { createLog } from "../../../src/telemetry/log.ts";
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { ManualClock, turns } from "../settle/rig.ts";
import { tagOf } from "./asks.ts";

const TAG = tagOf("Counted");
const REQUESTS = 512;
const SETTLEMENTS = 64;

function bench() {
  const breakers = new Breakers({
    store: { admit: () => Promise.reject(new StoreError("unavailable", "not asked here")), shardOf: () => "a" },
    clock: new ManualClock(),
    random: () => 1,
    metrics: createMetrics(),
    log: createLog({ level: "silent" }),
  });
  const waiting: PromiseWithResolvers<string>[] = [];
  const call = () => {
    const answer = Promise.withResolvers<string>();
    waiting.push(answer);
    return answer.promise;
  };
  return { breakers, waiting, call };
}

const isFull = (error: unknown) =>
  error instanceof StoreError && error.outcome === "unsent" && /too many/.test(error.message);

/** Ways in which a call ends; none of them opens the breaker. */
const ENDS: Readonly<Record<string, (answer: PromiseWithResolvers<string>) => void>> = {
  "an answer": (answer) => answer.resolve("done"),
  "a refusal of the store": (answer) => answer.reject(new StoreError("unavailable", "busy", { outcome: "refused" })),
  "an error of the gateway": (answer) => answer.reject(new TypeError("broken")),
};

for (const [name, end] of Object.entries(ENDS)) {
  test(`requests: after ${name} the next one is sent, at most ${REQUESTS} at once`, async () => {
    const { breakers, waiting, call } = bench();
    for (let round = 0; round < 3; round++) {
      const sent = Array.from({ length: REQUESTS }, () => breakers.request(TAG, call));
      assert.equal(waiting.length, REQUESTS, `round ${round}`);
      await assert.rejects(breakers.request(TAG, call), isFull);
      assert.equal(waiting.length, REQUESTS);
      for (const answer of waiting.splice(0)) end(answer);
      await Promise.allSettled(sent);
    }
    breakers.stop();
  });

  test(`settlements: after ${name} the next one of the queue is sent, oldest first, at most ${SETTLEMENTS} at once`, async () => {
    const { breakers, waiting, call } = bench();
    for (let round = 0; round < 3; round++) {
      const order: number[] = [];
      const sent = Array.from({ length: 3 * SETTLEMENTS }, (_, i) =>
        breakers.settlement(
          TAG,
          () => {
            order.push(i);
            return call();
          },
          false,
        ),
      );
      const ended = Promise.allSettled(sent);
      for (let done = 0; done < sent.length; done += SETTLEMENTS) {
        assert.equal(waiting.length, SETTLEMENTS, `round ${round}, ${done} have ended`);
        for (const answer of waiting.splice(0)) end(answer);
        await turns(4);
      }
      await ended;
      assert.deepEqual(order, [...sent.keys()]);
    }
    breakers.stop();
  });
}

test("a settlement that a client waits for is not queued, takes no slot, and is stopped by the breaker", async () => {
  const { breakers, waiting, call } = bench();
  const sent = Array.from({ length: 2 * SETTLEMENTS }, () => breakers.settlement(TAG, call, false));
  sent.push(...Array.from({ length: 3 * SETTLEMENTS }, () => breakers.settlement(TAG, call, true)));
  assert.equal(waiting.length, 4 * SETTLEMENTS);
  // Those without a slot release none.
  for (const answer of waiting.splice(SETTLEMENTS)) answer.resolve("done");
  await turns(4);
  assert.equal(waiting.length, SETTLEMENTS);
  for (const answer of waiting.splice(0)) answer.resolve("done");
  await turns(4);
  assert.equal(waiting.length, SETTLEMENTS);
  const away = new StoreError("unavailable", "away", { outcome: "unknown" });
  for (const answer of waiting.splice(0)) answer.reject(away);
  await Promise.allSettled(sent);
  await assert.rejects(breakers.settlement(TAG, call, true), { outcome: "unsent" });
  breakers.stop();
});
