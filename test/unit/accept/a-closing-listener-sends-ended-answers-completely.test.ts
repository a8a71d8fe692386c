/** ARCHITECTURE.md promise 12, docs/failure-model.md row A6: an answer that has ended when the listener closes reaches a client that reads slowly. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import test from "node:test";
import type { Reply } from "../../../src/accept/reply.ts";
import { request, startEcho } from "./echo.ts";

const CHUNK = Buffer.alloc(65_536, 97);
/** If the kernel has not taken a chunk in so many turns of the event loop, its buffers are full. */
const TURNS = 200;

/** Writes until the kernel takes nothing more. @returns the bytes, the last of which are still in the process. */
async function fill(reply: Reply): Promise<number> {
  let taken = true;
  reply.onDrain(() => {
    taken = true;
  });
  let bytes = 0;
  while (taken) {
    taken = reply.write(CHUNK);
    bytes += CHUNK.length;
    for (let turn = 0; turn < TURNS && !taken; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
  return bytes;
}

test("the end of a stream that waits for its client is sent before the connection closes", async (t) => {
  const ended = Promise.withResolvers<number>();
  const echo = await startEcho(t, {}, async (accepted, reply) => {
    await accepted.readBody();
    reply.open(200, {});
    const written = await fill(reply);
    reply.end(Buffer.from("data: [DONE]\n\n"));
    ended.resolve(written);
  });
  assert.ok("port" in echo.target);
  const client = connect(echo.target.port, "127.0.0.1");
  client.pause();
  client.write(request({}));
  const written = await ended.promise;
  const closed = echo.listener.close();
  let received = "";
  client.on("data", (piece) => {
    received += piece;
  });
  client.resume();
  await once(client, "close");
  await closed;
  assert.ok(received.length > written, `${received.length} bytes of more than ${written}`);
  assert.ok(received.endsWith("data: [DONE]\n\n\r\n0\r\n\r\n"));
});
