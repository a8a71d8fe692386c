/** A redirect is no sign of life: a front that sends every request to a login page would make a dead gateway look alive. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { run } from "./captured-run.ts";

test("health fails on a redirect, although the page to which it leads answers 200", async (t) => {
  const paths: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    paths.push(url);
    if (url === "/login") response.end("welcome");
    else response.writeHead(302, { location: "/login" }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { status, out } = await run(["health"], { env: { TOLLGATE_ADMIN_URL: url } });
  assert.deepEqual([status, out, paths], [1, "", ["/healthz"]]);
});
