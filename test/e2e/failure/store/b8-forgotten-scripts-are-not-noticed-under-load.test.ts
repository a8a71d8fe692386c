/** docs/failure-model.md row B8: `SCRIPT FLUSH` after every seven answers while requests run. */
import assert from "node:assert/strict";
import test from "node:test";
import { PATIENT } from "../../../unit/store/benches.ts";
import { scene, settledState } from "./rig.ts";

const REQUESTS = 150;
const AT_ONCE = 5;
/** Flushes the scripts again after this many answers. */
const ANSWERS_BETWEEN = 7;

test("if scripts are flushed all the time, every request is served and charged", async (t) => {
  // The test checks that nothing is refused because of missing scripts, so it tolerates a machine that stalls.
  const s = await scene(t, { storeTimes: PATIENT });
  let sent = 0;
  let answered = 0;
  const client = async () => {
    while (sent < REQUESTS) {
      sent++;
      assert.equal(await s.status(), "200");
      if (++answered % ANSWERS_BETWEEN === 0) await s.redis.command("SCRIPT", "FLUSH");
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  assert.equal(await s.metric("store_breaker_open"), 0);
  await settledState(s, sent);
});
