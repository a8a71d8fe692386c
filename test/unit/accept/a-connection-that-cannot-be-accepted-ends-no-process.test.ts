/**
 * If no descriptor is left, a connection cannot be accepted, and the server of Node reports that as an error. It is logged
 * as a defect; the process goes on and serves the connections that it has.
 */
import assert from "node:assert/strict";
import http, { type Server } from "node:http";
import { syncBuiltinESMExports } from "node:module";
import test, { type TestContext } from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { request, startEcho } from "./echo.ts";

/** Starts a listener, and returns the server of Node behind it as well. */
async function withServer(t: TestContext) {
  const { createServer } = http;
  const made: Server[] = [];
  const setCreator = (creator: typeof createServer) => {
    Object.assign(http, { createServer: creator });
    // Also for modules that have imported it by name.
    syncBuiltinESMExports();
  };
  setCreator(((...given: Parameters<typeof createServer>) => {
    const server = createServer(...given);
    made.push(server);
    return server;
  }) as typeof createServer);
  try {
    return { ...(await startEcho(t)), server: made[0] as Server };
  } finally {
    setCreator(createServer);
  }
}

test("an error of accepting is reported, and requests are served after it", async (t) => {
  const { server, target, crashes } = await withServer(t);
  const error = Object.assign(new Error("accept EMFILE"), { code: "EMFILE" });
  server.emit("error", error);
  assert.deepEqual(crashes, [error]);
  assert.equal((await exchange(target, request({})))[0]?.status, 200);
});
