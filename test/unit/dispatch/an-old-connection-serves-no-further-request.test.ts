/** A connection that is never idle would keep an address that its server's name no longer has. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { ask, assertAnswered, listening, rig, route, upstream } from "./rig.ts";

const AGE_MS_MAX = 600_000;

test("after ten minutes the next request opens a new connection", async (t) => {
  // undici asks no other clock for the age of a connection.
  const now = Date.now;
  let aheadMs = 0;
  Date.now = () => now() + aheadMs;
  t.after(() => {
    Date.now = now;
  });
  const sockets: unknown[] = [];
  const server = createServer((request, response) => {
    if (!sockets.includes(request.socket)) sockets.push(request.socket);
    request.resume();
    response.setHeader("content-type", "application/json").end("{}");
  });
  const { dispatcher } = rig(t, [upstream("east", await listening(t, server), { maxConcurrency: 1 })]);
  const run = async () => assertAnswered(await dispatcher.run(ask([route("east")], { stream: false })));
  await run();
  aheadMs = AGE_MS_MAX / 2;
  await run();
  assert.equal(sockets.length, 1);
  aheadMs = AGE_MS_MAX + 1_000;
  await run();
  assert.equal(sockets.length, 2);
  await run();
  assert.equal(sockets.length, 2);
});
