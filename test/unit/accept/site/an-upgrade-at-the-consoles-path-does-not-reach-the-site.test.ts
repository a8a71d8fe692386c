/**
 * docs/failure-model.md row 18: the console's path belongs to the gateway. A request there that asks for a WebSocket is
 * served like one that does not ask, and the site behind the gateway never sees it.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { createListener } from "../../../../src/accept/listener.ts";
import { newRequestId } from "../../../../src/values/request-id.ts";
import { systemClock } from "../../../../src/values/time.ts";
import { startRawSite } from "../../../rig/raw-site.ts";
import { exchange } from "../../../rig/raw-socket.ts";

const ask = (path: string) =>
  `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n`;

test("an upgrade at or below the console's path is answered by the console, and one beside it by the site", async (t) => {
  const site = await startRawSite(t);
  const listener = createListener(
    {
      ...{ address: { kind: "tcp", host: "127.0.0.1", port: 0 }, bodyBytesMax: 4_096, trustProxy: [], corsOrigins: [] },
      ...{ clock: systemClock, newRequestId: () => newRequestId(Date.now(), randomBytes) },
      ...{ siteUrl: () => site.url, consolePath: "/console" },
    },
    {
      onRequest: () => assert.fail(),
      onRefusal: (_refused, _protocol, reply) => reply.whole(400, {}, Buffer.from("refused")),
      async onConsole(_visit, reply) {
        reply.whole(200, {}, Buffer.from("the console"));
      },
      renderRefusal: () => ({ status: 400, headers: {}, body: Buffer.from("refused") }),
      onCrash: (error) => assert.fail(String(error)),
    },
  );
  const address = await listener.listen();
  assert.ok(address.kind === "tcp");
  t.after(async () => {
    listener.destroy();
    await listener.close();
  });
  const target = { port: address.port };
  for (const path of ["/console", "/console/keys"]) {
    assert.equal((await exchange(target, ask(path)))[0]?.body, "the console", path);
  }
  assert.deepEqual(site.requests, []);
  await exchange(target, ask("/consoles"));
  assert.equal(site.requests.length, 1);
});
