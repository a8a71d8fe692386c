/**
 * docs/failure-model.md row D4, invariant 25: for a hundred clients that read a few bytes now and then, the upstream
 * waits and the gateway's memory stays bounded.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import test from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { rawUpstream, requestBytes, SSE_HEAD, withUpstreams } from "./rig.ts";

const CLIENTS = 100;
/**
 * Invariant 25: 256 KiB and one event, on each side of the gateway; this includes all that Node keeps for both sockets.
 */
const BYTES_PER_STREAM_MAX = 2 * (256 * 1024 + 64 * 1024);
const OFFERED_BYTES = 64 * 1024 * 1024;

const CHUNK = Buffer.from(
  `data: ${JSON.stringify({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta: { content: "x".repeat(60_000) }, finish_reason: null }],
  })}\n\n`,
);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** The memory in use, without garbage and without what other threads have yet to free. */
async function usedBytes(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test("a hundred slow readers use a bounded amount of memory, and each gets its answer at its own pace", async () => {
  let stopped = 0;
  let offered = 0;
  const allStopped = Promise.withResolvers<void>();
  // Writes only what the kernel takes at once, so that nothing is buffered in this process on the upstream's side.
  const upstream = await rawUpstream((socket) => {
    socket.write(`${SSE_HEAD}connection: close\r\n\r\n`);
    const pump = () => {
      while (!socket.destroyed && socket.writableLength === 0 && offered < CLIENTS * OFFERED_BYTES) {
        socket.write(CHUNK);
        offered += CHUNK.length;
      }
      socket.once("drain", pump);
      stopped += 1;
      if (stopped >= CLIENTS) allStopped.resolve();
    };
    pump();
  });
  const here = await startGatewayHere({ config: withUpstreams({ eager: { url: upstream.url } }) });
  const clients: RawSocket[] = [];
  try {
    const account = await here.account({ usd: "1000" });
    const before = await usedBytes();
    for (let i = 0; i < CLIENTS; i++) {
      const client = new RawSocket({ port: here.port });
      client.socket.pause();
      client.send(requestBytes("chat", account.key, { model: "chat-eager", stream: true }));
      clients.push(client);
    }
    await allStopped.promise;
    // The flow has stopped when nothing moves while the loop turns many times.
    for (let last = -1; last !== offered; ) {
      last = offered;
      for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
    const held = (await usedBytes()) - before;
    assert.ok(held < CLIENTS * BYTES_PER_STREAM_MAX, `${Math.round(held / CLIENTS)} bytes for each stream`);
    assert.ok(offered < CLIENTS * OFFERED_BYTES, "the upstream was not held back");
    // A few bytes each, several times: each client makes progress, no faster than it reads.
    for (let round = 0; round < 3; round++) {
      for (const { socket } of clients) {
        socket.resume();
        await once(socket, "data");
        socket.pause();
      }
    }
    const after = (await usedBytes()) - before;
    const kept = clients.reduce((sum, client) => sum + client.text.length, 0);
    assert.ok(
      after - kept < CLIENTS * BYTES_PER_STREAM_MAX,
      `${Math.round((after - kept) / CLIENTS)} bytes each, later`,
    );
    const answered = await here.gateway.store.inspect(account.tag);
    assert.equal(answered?.inFlight, CLIENTS);
    for (const client of clients) client.close(true);
    const gone = () => here.log.filter((line) => line.stream_end === "client_gone").length;
    while (gone() < CLIENTS) await new Promise((resolve) => setImmediate(resolve));
    const rest = await here.gateway.store.inspect(account.tag);
    assert.deepEqual([rest?.account.held, rest?.inFlight], [0n, 0]);
  } finally {
    for (const client of clients) client.close(true);
    await here.close();
    await upstream.close();
  }
});
