/**
 * docs/failure-model.md row B10: Redis cannot save its snapshot (RDB) and therefore accepts no writes, while it answers every
 * read. Requests get 503, and `/readyz` says what is wrong, also when no request comes.
 */
import assert from "node:assert/strict";
import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { setTimeout } from "node:timers/promises";
import type { TestRedis } from "../../../rig/redis.ts";
import { scene, settledState } from "./rig.ts";

const NO_SNAPSHOT =
  "the store cannot be used now: Redis cannot save its snapshot (is its disk full?) and accepts no writes (stop-writes-on-bgsave-error)";
const POLL_MS = 20;

/** Redis saves a snapshot. @returns whether it could. */
async function saved(redis: TestRedis): Promise<boolean> {
  await redis.command("BGSAVE");
  for (;;) {
    const info = await redis.command("INFO", "persistence");
    if (info.includes("rdb_bgsave_in_progress:0")) return info.includes("rdb_last_bgsave_status:ok");
    await setTimeout(POLL_MS);
  }
}

/** A gateway on a Redis that saves snapshots, the last of which has failed: a folder has the name of the file. */
async function unsaved(t: TestContext, ...args: string[]) {
  const s = await scene(t, { redis: { args: ["--save", "3600 1000000", ...args] } });
  assert.equal(await s.status(), "200");
  await settledState(s, 1);
  const snapshot = join(s.redis.dir, "dump.rdb");
  mkdirSync(snapshot);
  assert.equal(await saved(s.redis), false);
  return { ...s, repair: () => rmdirSync(snapshot) };
}

async function readiness(adminUrl: string): Promise<{ readonly status: number; readonly text: string }> {
  const reply = await fetch(`${adminUrl}/readyz`);
  return { status: reply.status, text: await reply.text() };
}

test("while writes are refused the gateway is not ready and says why; after a snapshot it serves again", async (t) => {
  const s = await unsaved(t);
  await s.here.logged(({ event }) => event === "store_away");
  let ready = await readiness(s.here.adminUrl);
  // Five seconds of it are needed.
  for (; ready.status === 200; ready = await readiness(s.here.adminUrl)) await setTimeout(POLL_MS);
  assert.equal(ready.status, 503);
  assert.ok(ready.text.includes(NO_SNAPSHOT), ready.text);
  assert.equal(await s.metric("store_up"), 0);
  assert.equal(await s.status(), "503 store_unavailable");

  s.repair();
  assert.equal(await saved(s.redis), true);
  await s.here.logged(({ event }) => event === "store_back");
  assert.equal((await readiness(s.here.adminUrl)).status, 200);
  assert.equal(await s.status(), "200");
  await settledState(s, 2);
});

test("a Redis that accepts writes after a failed snapshot is used as before", async (t) => {
  const s = await unsaved(t, "--stop-writes-on-bgsave-error", "no");
  assert.equal(await s.status(), "200");
  await s.here.store.check();
  await settledState(s, 2);
});
