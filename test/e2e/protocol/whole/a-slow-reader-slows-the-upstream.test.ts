/**
 * docs/failure-model.md invariants 24 and 25: the gateway does not fetch what a client does not read, and a client that
 * disconnects ends the work upstream.
 */
import assert from "node:assert/strict";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { startGatewayHere, testConfig } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { assertAtRest, bodyOf } from "./asking.ts";

const CHUNK = Buffer.from(
  `data: ${JSON.stringify({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "chat-1",
    choices: [{ index: 0, delta: { content: "x".repeat(60_000) }, finish_reason: null }],
  })}\n\n`,
);

/**
 * Buffers of the kernel on two connections (loopback allows each some megabytes) and the gateway's; far below what is
 * offered.
 */
const TAKEN_BYTES_MAX = 24 * 1024 * 1024;
const OFFERED_BYTES = 200 * 1024 * 1024;

test("a client that reads nothing stops the upstream, and its disconnect ends the upstream's stream", async () => {
  const opened = Promise.withResolvers<ServerResponse>();
  const upstream = createServer((req, res) => {
    req.resume();
    res.writeHead(200, { "content-type": "text/event-stream" });
    opened.resolve(res);
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const upstreamUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
  const here = await startGatewayHere({ config: (places) => testConfig({ ...places, upstreamUrl }) });
  try {
    const account = await here.account();
    const body = JSON.stringify(bodyOf("chat", { stream: true }));
    const client = new RawSocket({ port: here.port });
    client.socket.pause();
    client.send(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${account.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    const res = await opened.promise;
    const gone = new Promise<void>((resolve) => res.on("close", () => resolve()));
    let taken = 0;
    // Writes as long as the data is accepted. The flow has stopped when a write is pending while the event loop turns
    // many times.
    while (taken < OFFERED_BYTES) {
      const took = res.write(CHUNK) || (await drainedWithin(res, 2_000));
      taken += CHUNK.length;
      if (!took) break;
    }
    assert.ok(taken < TAKEN_BYTES_MAX, `${taken} bytes were taken for a client that read nothing`);
    client.close(true);
    await gone;
    await here.logged((line) => line.msg === "request" && line.stream_end === "client_gone");
    await assertAtRest(here, account);
  } finally {
    await here.close();
    upstream.closeAllConnections();
    upstream.close();
  }
});

/** Whether the socket accepts bytes again within this many turns of the event loop. */
async function drainedWithin(res: ServerResponse, turns: number): Promise<boolean> {
  let drained = false;
  res.once("drain", () => {
    drained = true;
  });
  for (let turn = 0; turn < turns && !drained; turn++) await new Promise((resolve) => setImmediate(resolve));
  return drained;
}
