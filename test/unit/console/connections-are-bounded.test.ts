/** Who can connect to the admin address can hold so many connections, and no more of the gateway's descriptors. */
import assert from "node:assert/strict";
import test from "node:test";
import { RawSocket } from "../../rig/raw-socket.ts";
import { startConsole } from "./running-console.ts";

/** As `src/console/servers.ts` has it. */
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
