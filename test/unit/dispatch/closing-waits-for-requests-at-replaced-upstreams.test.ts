/** A drain loses no request, also if a reload has replaced the upstream that is answering it. */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, assertAnswered, byName, heldServer, rig, route, settled, upstream } from "./rig.ts";

test("closing waits for a request at an upstream that a reload has replaced", async (t) => {
  const [before, after] = [await heldServer(t), await heldServer(t)];
  const { dispatcher } = rig(t, [upstream("east", before.base)]);
  const running = dispatcher.run(ask([route("east")], { stream: false }));
  const held = await before.next();
  dispatcher.replace(byName([upstream("east", after.base)]));
  let isClosed = false;
  const closed = dispatcher.close().then(() => {
    isClosed = true;
  });
  for (let turn = 0; turn < 10; turn++) await settled();
  assert.equal(isClosed, false);
  held.answer();
  assertAnswered(await running);
  await closed;
});
