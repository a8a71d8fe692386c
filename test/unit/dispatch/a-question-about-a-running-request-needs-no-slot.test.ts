/**
 * The gateway asks a server about an answer that it keeps while the stream of this answer has a slot. If the question needed one, too,
 * silent streams could take all slots of an upstream, and none of them could find out that its server is down
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import test from "node:test";
import {
  ask,
  assertAnswered,
  FakeClock,
  HEALTH,
  heldServer,
  httpServer,
  rig,
  route,
  settled,
  upstream,
} from "./rig.ts";

const QUESTION = { stream: false, needsNoSlot: true, method: "GET", pathSuffix: "/resp_1" } as const;
const ROUTE = route("east", {}, "responses");

test("it is answered while streams have all slots, and takes none", async (t) => {
  const base = await httpServer(t, (request, response) => {
    request.resume();
    const isQuestion = request.method === "GET";
    response.writeHead(200, { "content-type": isQuestion ? "application/json" : "text/event-stream" });
    if (isQuestion) response.end("{}");
    else response.write("data: first\n\n");
  });
  const { dispatcher } = rig(t, [upstream("east", base, { protocol: "responses", maxConcurrency: 2 })]);
  const streams = [];
  for (let count = 0; count < 2; count++) {
    const stream = await dispatcher.run(ask([ROUTE]));
    assertAnswered(stream);
    streams.push(stream);
  }
  assertAnswered(await dispatcher.run(ask([ROUTE], { ...QUESTION, encodeFor: noBody })));
  assert.equal(dispatcher.report()[0]?.inFlight, 2);
  const refused = await dispatcher.run(ask([ROUTE]));
  assert.equal(refused.answered, false, "a request of a client still needs a slot");
  for (const { body } of streams) body?.abort();
});

test("it is not the probe that decides on the return of its upstream", async (t) => {
  const east = await heldServer(t);
  const clock = new FakeClock();
  const { dispatcher, turns } = rig(t, [upstream("east", east.base, { health: { ...HEALTH, failures: 1 } })], clock);
  const whole = { stream: false, deadlineMs: clock.monotonicMs() + 100_000 };
  const failing = dispatcher.run(ask([route("east")], whole));
  for (let attempts = 0; attempts < 2; attempts++) (await east.next()).answer(500);
  await failing;
  assert.deepEqual(turns, ["east: failures"]);
  clock.advance(HEALTH.coolDownMaxMs);
  const question = dispatcher.run(ask([route("east")], { ...whole, needsNoSlot: true, pathSuffix: "/resp_1" }));
  const asked = await east.next();
  await settled();
  assert.equal(dispatcher.report()[0]?.health, "probe", "the next request of a client is the probe");
  asked.answer();
  assertAnswered(await question);
});

function noBody() {
  return { body: new Uint8Array(), token: { chunks: [], model: "" } };
}
