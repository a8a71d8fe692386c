/**
 * docs/decisions/stateful-upstreams-get-wrapped-ids.md: the upstream that ran a container is tried first. A request to a
 * side endpoint, such as a compaction, has no conversation.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, assertAnswered, FakeClock, jsonReply, replying, rig, route, upstream } from "./rig.ts";

test("the upstream that the caller prefers is tried first, whatever is drawn", async (t) => {
  const upstreams = [upstream("a", await replying(t, jsonReply())), upstream("b", await replying(t, jsonReply()))];
  for (const drawn of [0, 0.999]) {
    let draws = 0;
    const { dispatcher } = rig(t, upstreams, new FakeClock(), () => Math.abs(drawn - (draws++ % 2)));
    for (const prefers of ["a", "b"]) {
      const result = await dispatcher.run(
        ask([route("a"), route("b")], { stream: false, deadlineMs: 1_000_000, pathSuffix: "/compact", prefers }),
      );
      assertAnswered(result);
      assert.equal(result.route.upstream, prefers);
    }
  }
});
