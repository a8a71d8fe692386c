// docs/failure-model.md row B3: a timeout must mean that Redis is late. If the gateway itself was busy, the reply is already in
// its socket.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { connect } from "../../../src/store/redis/connection/connect.ts";
import { Runner } from "../../../src/store/redis/connection/runner.ts";
import { Secret } from "../../../src/values/secret.ts";
import { startRedis } from "../../rig/redis.ts";
import { admitAsk, causeOf, makeAccount, ridOf } from "./asks.ts";
import { openUrl } from "./benches.ts";

/** Longer than both tries of a step may take. */
const HELD_MS = 700;

const ADMISSIONS = 20;

/** More turns than it takes to write all commands. */
const TURNS_TO_WRITE = 10;

/** The number of scripts that Redis has run; the call blocks the event loop. */
function scriptsRun(port: number): number {
  const stats = execFileSync("redis-cli", ["-p", `${port}`, "INFO", "commandstats"], { encoding: "utf8" });
  return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

/** Blocks the event loop this long, as a burst of work does; on a busy machine until everything is answered. */
function holdTheLoop(port: number, scripts: number): void {
  const endMs = performance.now() + HELD_MS;
  while (performance.now() < endMs || scriptsRun(port) < scripts);
}

test("a reply that is in the socket when the timeout fires counts as an answer", async () => {
  const redis = await startRedis();
  const store = await openUrl(redis, {});
  try {
    const tag = await makeAccount(store, "Held", { funds: 100_000n });
    // Nothing is answered before the loop is blocked, and everything while it is.
    const before = scriptsRun(redis.port);
    redis.freeze();
    const answers = Array.from({ length: ADMISSIONS }, (_, i) =>
      store.admit(admitAsk({ tag, requestId: ridOf(i + 1) })),
    );
    for (let turn = 0; turn < TURNS_TO_WRITE; turn++) await nextTurn();
    redis.thaw();
    holdTheLoop(redis.port, before + ADMISSIONS);
    assert.deepEqual(new Set((await Promise.all(answers)).map(causeOf)), new Set(["admitted"]));
  } finally {
    await store.close();
    await redis.stop();
  }
});

test("that reply belongs to the first try: the command itself has no further timeout", async () => {
  const redis = await startRedis();
  const connection = await connect({ kind: "redis", url: new Secret(redis.url) }, () => undefined);
  try {
    const runner = new Runner(connection, { tryMs: 400, totalMs: 480 });
    let tries = 0;
    const answer = runner.step(({ get }) => {
      tries++;
      return get("nothing");
    });
    // Waits until it is written.
    await nextTurn();
    holdTheLoop(redis.port, 0);
    assert.equal(await answer, null);
    assert.equal(tries, 1);
  } finally {
    connection.close();
    await redis.stop();
  }
});
