/**
 * docs/failure-model.md row B5 on the whole gateway: the reply is lost after the script ran, with or without its
 * connection.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { scene, settledState } from "./rig.ts";

for (const way of ["loseNextReply", "swallowNextReply"] as const) {
  test(`${way}: the admission and the charge count once`, async (t) => {
    const s = await scene(t);
    // A script that Redis does not know is answered with NOSCRIPT, and then that reply would be the lost one.
    assert.equal(await s.status(), "200");
    s.proxy[way]();
    // A silent connection leaves no time for a second attempt: the request is refused in time, and its hold released.
    assert.equal(await s.status(), way === "loseNextReply" ? "200" : "503 store_unavailable");
    await settledState(s, way === "loseNextReply" ? 2 : 1);
    // Two seconds of silence may have opened the breaker.
    while ((await s.status()) !== "200");
    const served = way === "loseNextReply" ? 3 : 2;
    s.here.simulator.hold();
    const running = s.status();
    await Promise.race([s.here.simulator.waitFor(served + 1), running.then((answer) => assert.fail(answer))]);
    s.proxy[way]();
    s.here.simulator.release();
    assert.equal(await running, "200");
    await settledState(s, served + 1);
    assert.equal(s.proxy.faults(), 2);
  });
}
