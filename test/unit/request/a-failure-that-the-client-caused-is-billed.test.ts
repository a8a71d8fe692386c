/**
 * A failure in the middle of a stream that its client may have caused is reported to its bill: an answer that grows
 * beyond what can be held was ended by the client's request, and a call that the model could not write is a cut answer
 * (ARCHITECTURE.md promise 3).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

const FAULT = { cause: "upstream_invalid", code: undefined, reason: "it failed" } as const;

test("a failure that the client can cause is marked as such, and the stream counts as stopped unless the model failed", async () => {
  for (const [more, askedFor, stopped] of [
    [{ canBeAskedFor: true }, true, true],
    [{ canBeAskedFor: true, ofModel: true }, true, false],
    [{}, false, false],
  ] as const) {
    const stream = new Relayed();
    stream.fault = { ...FAULT, ...more };
    stream.say();
    const end = await stream.ended;
    assert.deepEqual(
      [end.reason, end.askedFor, end.stopped, stream.aborted],
      ["upstream_invalid", askedFor, stopped, true],
    );
  }
});
