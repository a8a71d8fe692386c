/**
 * A request to the console's pages may carry a key, for example if a program has the wrong address. Keys never leave the
 * reading of requests: the console gets the cookies that belong to it, and none of the headers for keys.
 */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import test from "node:test";
import { createListener } from "../../../src/accept/listener.ts";
import { newRequestId } from "../../../src/values/request-id.ts";
import { systemClock } from "../../../src/values/time.ts";
import { exchange } from "../../rig/raw-socket.ts";
import { KEY } from "./echo.ts";

test("a visit to the console has its cookies and its other headers, and no header for keys", async (t) => {
  const seen: (readonly [string, string])[] = [];
  const listener = createListener(
    {
      ...{ address: { kind: "tcp", host: "127.0.0.1", port: 0 }, bodyBytesMax: 4_096, trustProxy: [], corsOrigins: [] },
      ...{ clock: systemClock, newRequestId: () => newRequestId(Date.now(), randomBytes), consolePath: "/console" },
    },
    {
      onRequest: () => assert.fail(),
      onRefusal: () => assert.fail(),
      onCrash: (error) => assert.fail(String(error)),
      renderRefusal: () => ({ status: 400, headers: {}, body: Buffer.from("refused") }),
      async onConsole({ headers }, reply) {
        seen.push(...headers.entries());
        reply.whole(200, {}, Buffer.from("the console"));
      },
    },
  );
  const address = await listener.listen();
  assert.ok(address.kind === "tcp");
  t.after(async () => {
    listener.destroy();
    await listener.close();
  });
  const head = [
    ...["GET /console HTTP/1.1", "Host: a", `Authorization: Bearer ${KEY}`, `X-Api-Key: ${KEY}`],
    ...[`Proxy-Authorization: Bearer ${KEY}`, "Cookie: __Host-tollgate-owner=session", "Accept: text/html"],
  ];
  const [answer] = await exchange({ port: address.port }, `${head.join("\r\n")}\r\n\r\n`);
  assert.equal(answer?.body, "the console");
  assert.deepEqual(seen, [
    ["host", "a"],
    ["cookie", "__Host-tollgate-owner=session"],
    ["accept", "text/html"],
  ]);
});
