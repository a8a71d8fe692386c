/** docs/failure-model.md row D3: a client that reads nothing is cut, one that reads slowly is not. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import test, { type TestContext } from "node:test";
import type { Reply } from "../../../src/accept/reply.ts";
import { request, startEcho } from "./echo.ts";

const WRITE_STALL_MS = 60_000;
/** More than the kernel buffers at once. */
const BODY = Buffer.alloc(32_000_000, 97);
const STEP_BYTES = 4_000_000;

/** A client of a large answer. Fake timers control the time of the stall limit. */
async function startReading(t: TestContext) {
  const answered = Promise.withResolvers<Reply>();
  const echo = await startEcho(t, { limits: { writeStallMs: WRITE_STALL_MS } }, async (accepted, reply) => {
    await accepted.readBody();
    t.mock.timers.enable({ apis: ["setTimeout"] });
    reply.whole(200, {}, BODY);
    answered.resolve(reply);
  });
  assert.ok("port" in echo.target);
  const client = connect(echo.target.port, "127.0.0.1");
  t.after(() => client.destroy());
  client.on("error", () => {});
  client.pause();
  client.write(request({}));
  return { client, reply: await answered.promise };
}

test("an answer that is read slowly but steadily arrives complete", async (t) => {
  const { client } = await startReading(t);
  let received = 0;
  let steps = 0;
  const whole = Promise.withResolvers<void>();
  client.on("close", () => whole.reject(new Error(`cut after ${received} bytes`)));
  client.on("data", (chunk: Buffer) => {
    received += chunk.length;
    if (received >= BODY.length) whole.resolve();
    if (received < (steps + 1) * STEP_BYTES) return;
    steps++;
    t.mock.timers.tick(WRITE_STALL_MS * 0.4);
  });
  client.resume();
  await whole.promise;
  assert.ok(steps * 0.4 > 2, "longer than the limit for a client that reads nothing");
});

test("an answer of which nothing is read is cut", async (t) => {
  const { client, reply } = await startReading(t);
  // The kernel first buffers a part of it.
  while (!reply.gone) {
    t.mock.timers.tick(WRITE_STALL_MS);
    await new Promise((resolve) => setImmediate(resolve));
  }
  client.resume();
  await once(client, "close");
  assert.ok(client.bytesRead < BODY.length);
});

test("an answer of which only the beginning is read is cut", async (t) => {
  const { client, reply } = await startReading(t);
  const begun = Promise.withResolvers<void>();
  client.on("data", () => {
    if (client.bytesRead < 2 * STEP_BYTES) return;
    client.pause();
    begun.resolve();
  });
  client.resume();
  await begun.promise;
  for (let turns = 0; !reply.gone; turns++) {
    assert.ok(turns < 10_000, "the stalled connection is closed");
    t.mock.timers.tick(WRITE_STALL_MS);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(client.bytesRead < BODY.length);
});
