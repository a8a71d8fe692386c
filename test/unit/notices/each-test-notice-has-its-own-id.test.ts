/** A receiver drops a message whose id it has seen. A second test notice must not look like the first one sent again. */
import assert from "node:assert/strict";
import test from "node:test";
import { startRig } from "./rig.ts";

test("two test notices have two ids, and both are accepted", async (t) => {
  const { notices, receiver } = await startRig(t);
  const [first, second] = [await notices.test(), await notices.test()];
  assert.deepEqual([first?.outcome, second?.outcome], ["taken", "taken"]);
  assert.notEqual(first?.id, second?.id);
  assert.deepEqual(
    receiver.log.map(({ id }) => id),
    [first?.id, second?.id],
  );
});
