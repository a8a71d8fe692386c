/** docs/failure-model.md row B8: `SCRIPT FLUSH` every 50 ms while requests run. */
import assert from "node:assert/strict";
import test from "node:test";
import { setInterval } from "node:timers/promises";
import { scene, settledState } from "./rig.ts";

const REQUESTS = 150;
const AT_ONCE = 5;

test("scripts are forgotten all the time: every request is served and charged", async (t) => {
  const s = await scene(t);
  const done = new AbortController();
  let flushes = 0;
  const flushing = (async () => {
    for await (const _ of setInterval(50, undefined, { signal: done.signal })) {
      await s.redis.command("SCRIPT", "FLUSH");
      flushes++;
    }
  })().catch((error: Error) => assert.equal(error.name, "AbortError"));
  let sent = 0;
  const client = async () => {
    while (sent < REQUESTS) {
      sent++;
      assert.equal(await s.status(), "200");
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  done.abort();
  await flushing;
  assert.ok(flushes >= 3, `${flushes} times`);
  assert.equal(await s.metric("store_breaker_open"), 0);
  await settledState(s, sent);
});
