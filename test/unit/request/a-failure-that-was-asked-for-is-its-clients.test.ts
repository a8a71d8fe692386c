/**
 * A failure in the midst of a stream that its client can have asked for is told to its bill: an answer that grows beyond what can
 * be held is ended by the client's doing, and a call that the model could not write has broken off (ARCHITECTURE.md promise 3).
 */
import assert from "node:assert/strict";
import test from "node:test";
import { Relayed } from "./rig.ts";

const FAULT = { cause: "upstream_invalid", code: undefined, reason: "it failed" } as const;

test("where its server is well, where its model has failed, and where nobody asked for it", async () => {
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
