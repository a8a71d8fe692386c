/** A browser's cookies may arrive in several header lines. They are one list, whichever line has the session. */
import assert from "node:assert/strict";
import test from "node:test";
import { startGatewayHere } from "../../../../rig/gateway.ts";
import { RawSocket } from "../../../../rig/raw-socket.ts";
import { cookieOf } from "./owner-pages.ts";

test("an owner is signed in whichever of several cookie lines has the session", async (t) => {
  const gateway = await startGatewayHere();
  t.after(() => gateway.close());
  const { name } = await gateway.account();
  const session = await cookieOf(gateway, name);
  const { host, port } = new URL(gateway.url);
  for (const cookies of [[session], ["a=1", session], [session, "a=1"], ["a=1", `b=2; ${session}`, "c=3"]]) {
    const lines = cookies.map((cookie) => `cookie: ${cookie}\r\n`).join("");
    const socket = new RawSocket({ port: Number(port) });
    t.after(() => socket.socket.destroy());
    socket.send(
      `GET /console/api/session HTTP/1.1\r\nhost: ${host}\r\nx-tollgate-console: 1\r\n${lines}connection: close\r\n\r\n`,
    );
    const [answer] = await socket.responsesUntilClosed();
    assert.equal(answer?.status, 200, `${cookies.length} lines: ${answer?.body}`);
  }
});
