// docs/failure-model.md row B3: what is late is Redis. A gateway that was busy itself finds the reply in its socket.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { startRedis } from "../../rig/redis.ts";
import { admitAsk, causeOf, makeAccount, ridOf } from "./asks.ts";
import { openUrl } from "./benches.ts";

/** Longer than both tries of a step may take. */
const HELD_MS = 700;

/** More than it takes until all commands are written. */
const TURNS_TO_WRITE = 10;

/** One turn of the event loop that takes so long, as a burst of work does. */
function holdTheLoop(): void {
  const endMs = performance.now() + HELD_MS;
  while (performance.now() < endMs);
}

test("a reply that lies in the socket when its time is up is an answer", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis);
  try {
    const tag = await makeAccount(store, "Held", { funds: 100_000n });
    // Nothing is answered before the loop is held, and all of it while it is.
    redis.freeze();
    const answers = Array.from({ length: 20 }, (_, i) => store.admit(admitAsk({ tag, requestId: ridOf(i + 1) })));
    for (let turn = 0; turn < TURNS_TO_WRITE; turn++) await nextTurn();
    redis.thaw();
    holdTheLoop();
    assert.deepEqual(new Set((await Promise.all(answers)).map(causeOf)), new Set(["admitted"]));
  } finally {
    await store.close();
    await redis.stop();
  }
});
