/** A client of the admin address can hold a limited number of connections, and thus of the gateway's descriptors. */
import assert from "node:assert/strict";
import test from "node:test";
import { socketsKeptBy } from "../../rig/kept-sockets.ts";
import { RawSocket } from "../../rig/raw-socket.ts";
import { startConsole } from "./running-console.ts";

/** As in `src/console/servers.ts`. */
const CONNECTIONS_MAX = 256;
const PROBE = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";

test("a connection beyond 256 is closed without an answer", async (t) => {
  const { url } = await startConsole(t);
  const port = Number(new URL(url).port);
  const ask = async () => {
    const client = new RawSocket({ port }).send(PROBE);
    t.after(() => client.close());
    return (await client.next())?.status;
  };
  const statuses = await Promise.all(Array.from({ length: CONNECTIONS_MAX }, ask));
  assert.deepEqual(new Set(statuses), new Set([200]));
  assert.equal(await ask(), undefined);
});

test("connections that have ended are garbage-collected", async (t) => {
  const { url } = await startConsole(t);
  const port = Number(new URL(url).port);
  // The listener ends the connection with its answer: when the client's end is closed, so is the other one.
  const pass = async () => {
    const client = new RawSocket({ port }).send(PROBE.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n"));
    assert.equal((await client.responsesUntilClosed())[0]?.status, 200);
  };
  const rounds = 40;
  const kept = await socketsKeptBy(pass, rounds);
  assert.ok(kept < rounds / 2, `${kept} sockets of ${rounds} connections are still there`);
});
