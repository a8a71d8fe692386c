/**
 * What the gateway reads from a server's word about an answer that it keeps, and when it can ask
 * (docs/decisions/stateful-upstreams-get-wrapped-ids.md).
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { WHOLE_BYTES_MAX } from "../../../src/dispatch/attempt.ts";
import { askKeptAt } from "../../../src/request/stored/kept-answer.ts";
import { type Clock, systemClock } from "../../../src/values/time.ts";
import { ask, assertAnswered, byName, FakeClock, rig, route, settled, timeouts, upstream } from "../dispatch/rig.ts";

const ROUTE = route("east", {}, "responses");
const USAGE = { input_tokens: 11, output_tokens: 700, total_tokens: 711 };
const OUTPUT = [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "part" }] }];

/** A server, and a stream that has one of its slots. */
async function scene(
  t: TestContext,
  told: (response: ServerResponse) => void,
  clock: Clock = systemClock,
  maxConcurrency = 1,
) {
  const server = createServer((request, response) => {
    request.resume();
    if (request.method === "GET") told(response);
    else response.writeHead(200, { "content-type": "text/event-stream" }).write("data: first\n\n");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const limits = { maxConcurrency, ...timeouts({ idleMs: 60_000 }) };
  const { dispatcher } = rig(t, [upstream("east", base, { protocol: "responses", ...limits })], clock);
  const stream = await dispatcher.run(ask([ROUTE]));
  assertAnswered(stream);
  t.after(() => stream.body?.abort());
  const cut = new AbortController();
  return {
    dispatcher,
    cut,
    asked: () => askKeptAt(ROUTE, { dispatcher, clock, cut: cut.signal }, () => {})("resp_1"),
  };
}

function json(status: number, body: unknown) {
  return (response: ServerResponse) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  };
}

for (const [title, body, expected] of [
  ["queued: it still writes", { status: "queued" }, ["running"]],
  ["in progress: it still writes", { status: "in_progress" }, ["running"]],
  ["completed: its count", { status: "completed", usage: USAGE, output: OUTPUT }, ["ended", 700, true, 4]],
  ["incomplete: its count", { status: "incomplete", usage: USAGE, output: OUTPUT }, ["ended", 700, true, 4]],
  ["completed without a count: its output", { status: "completed", output: OUTPUT }, ["ended", undefined, false, 4]],
  ["cancelled: what was written by then", { status: "cancelled", output: OUTPUT }, ["ended", undefined, false, 4]],
  ["cancelled with a count", { status: "cancelled", usage: USAGE, output: [] }, ["ended", 700, true, 0]],
  ["cancelled with nothing to retrieve", { status: "cancelled", output: [] }, ["none"]],
  ["failed: there is no answer", { status: "failed", usage: USAGE, output: OUTPUT }, ["none"]],
  ["another word", { status: "thinking", usage: USAGE, output: OUTPUT }, ["unknown"]],
] as const) {
  test(title, async (t) => {
    const { asked } = await scene(t, json(200, { id: "resp_1", object: "response", ...body }));
    const said = await asked();
    const { state } = said;
    const counts = state === "ended" ? [said.counts.usage?.output, said.counts.final, said.counts.produced.bytes] : [];
    assert.deepEqual([state, ...counts], expected);
  });
}

for (const [title, reply, state] of [
  ["a server that does not know the answer has none", json(404, {}), "none"],
  ["a server that refuses because of its rate limit may still write", json(429, {}), "running"],
  ["a server that fails tells nothing", json(500, {}), "unknown"],
  ["a server that answers with no object tells nothing", json(200, []), "unknown"],
  ["a server whose answer is too large to read may still write", json(200, "x".repeat(WHOLE_BYTES_MAX)), "running"],
] as const) {
  test(title, async (t) => {
    const { asked } = await scene(t, reply);
    assert.deepEqual(await asked(), { state });
  });
}

test("an upstream that is no longer configured is not waited for", async (t) => {
  const { dispatcher, asked } = await scene(t, json(200, { status: "in_progress" }));
  dispatcher.replace(byName([upstream("west", "http://127.0.0.1:9/v1")]));
  assert.deepEqual(await asked(), { state: "unknown" });
});

test("the deadline of a drain does not wait for a server that is slow to answer", async (t) => {
  const arrived = Promise.withResolvers<void>();
  // Only the drain ends the question: its own time does not pass.
  const { cut, asked } = await scene(t, () => arrived.resolve(), new FakeClock());
  const said = asked();
  await arrived.promise;
  cut.abort();
  assert.deepEqual(await said, { state: "unknown" });
});

test("the end of a stream waits for its server for five seconds", async (t) => {
  const arrived = Promise.withResolvers<void>();
  const clock = new FakeClock();
  const { asked } = await scene(t, () => arrived.resolve(), clock);
  const said = asked();
  await arrived.promise;
  clock.advance(4_999);
  assert.equal(await Promise.race([said, settled()]), undefined);
  clock.advance(1);
  assert.deepEqual(await said, { state: "unknown" });
});

const LATE = "so may a server whose answer has begun, if the rest does not come within half a minute";
test(LATE, async (t) => {
  const begun = Promise.withResolvers<void>();
  const clock = new FakeClock();
  const begins = (response: ServerResponse) => {
    response.writeHead(200, { "content-type": "application/json" }).write('{"id":', () => begun.resolve());
  };
  const replies = [begins, json(404, {})];
  const { asked } = await scene(t, (response) => replies.shift()?.(response), clock, 2);
  const said = asked();
  await begun.promise;
  // What was sent before this question has arrived when its answer has.
  assert.deepEqual(await asked(), { state: "none" });
  clock.advance(5_000);
  clock.advance(24_999);
  assert.equal(await Promise.race([said, settled()]), undefined);
  clock.advance(1);
  assert.deepEqual(await said, { state: "running" });
});
