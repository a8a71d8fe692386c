/**
 * docs/failure-model.md row B5 on the whole gateway: the reply is lost after the script has run, with its connection or
 * in silence.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { scene, settledState } from "./rig.ts";

for (const way of ["loseNextReply", "swallowNextReply"] as const) {
  test(`${way}: the admission and the charge count once`, async (t) => {
    const s = await scene(t);
    // What Redis does not know yet is answered with NOSCRIPT, and that reply would be the one that is lost.
    assert.equal(await s.status(), "200");
    s.proxy[way]();
    // A silent connection has nothing left for the second try: refused in time, and its hold given back.
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
