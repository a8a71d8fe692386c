/** docs/failure-model.md row B8: `SCRIPT FLUSH` every 50 ms while requests run. */
import assert from "node:assert/strict";
import test from "node:test";
import { PATIENT } from "../../../unit/store/benches.ts";
import { scene, settledState } from "./rig.ts";

const REQUESTS = 150;
const AT_ONCE = 5;
/** A client forgets them each time after so many answers, while the others go on. */
const ANSWERS_BETWEEN = 7;

test("scripts are forgotten all the time: every request is served and charged", async (t) => {
  // What is judged is that nothing is refused for scripts that are gone; a machine that stands still is not.
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
