/**
 * On a machine without IPv6, `node:net` does not ask for IPv6 addresses. Some name servers never answer that question, so
 * a lookup that asks it takes seconds.
 */
import assert from "node:assert/strict";
import { ADDRCONFIG } from "node:dns";
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { test } from "node:test";
import { type AskSystem, sharedLookup } from "../../../src/values/program/shared-lookup.ts";
import { systemClock } from "../../../src/values/time.ts";

test("the system is asked for the families of addresses that the machine has", async (t) => {
  const server = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const asked: Parameters<AskSystem>[1][] = [];
  const lookup = sharedLookup(systemClock, (_name, options, answer) => {
    asked.push(options);
    answer(null, [{ address: "127.0.0.1", family: 4 }]);
  });
  const socket = connect({ host: "name.test", port: (server.address() as AddressInfo).port, lookup });
  await once(socket, "connect");
  socket.destroy();
  assert.deepEqual(asked, [{ all: true, hints: ADDRCONFIG }]);
});
