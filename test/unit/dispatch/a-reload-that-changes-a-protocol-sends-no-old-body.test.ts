/**
 * The body of a request is made for the protocol that its upstream had at admission. If a reload changes the protocol
 * while the request waits for a slot or for its retry, that body is not sent to the upstream.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { ask, assertAnswered, byName, FakeClock, heldServer, refusalIn, rig, route, settled, upstream } from "./rig.ts";

const QUEUE = { maxConcurrency: 1, queue: { max: 2, waitMs: 5_000 } };
const WHOLE = { stream: false, deadlineMs: 100_000, owner: { account: "a", key: "a1" } };

test("a queued request is refused if a reload has given its upstream another protocol", async (t) => {
  const east = await heldServer(t);
  const { dispatcher } = rig(t, [upstream("east", east.base, QUEUE)], new FakeClock());
  const first = dispatcher.run(ask([route("east")], WHOLE));
  const held = await east.next();
  const waiting = dispatcher.run(ask([route("east")], WHOLE));
  await settled();
  dispatcher.replace(byName([upstream("east", east.base, { ...QUEUE, protocol: "messages" })]));
  held.answer();
  assertAnswered(await first);
  const sent = east.next().then(() => assert.fail("it was sent"));
  assert.equal(refusalIn(await Promise.race([waiting, sent])).cause, "upstream_unavailable");
});

test("a failed request is not retried where a reload has given an upstream another protocol", async (t) => {
  const east = await heldServer(t);
  const west = await heldServer(t);
  const settings = [upstream("east", east.base), upstream("west", west.base)] as const;
  const { dispatcher } = rig(t, settings, new FakeClock());
  const asked = dispatcher.run(ask([route("east"), route("west")], WHOLE));
  const held = await east.next();
  dispatcher.replace(byName([settings[0], upstream("west", west.base, { protocol: "responses" })]));
  held.answer(500);
  const sent = west.next().then(() => assert.fail("it was sent"));
  assert.equal(refusalIn(await Promise.race([asked, sent])).cause, "upstream_unavailable");
});
