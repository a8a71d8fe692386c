/**
 * A front whose gateway restarts answers 502 or 503 itself. A command that follows a list goes on after that, as after a
 * refused connection. Any other answer that is not the admin API's shows that the address is wrong.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { connectAdmin, UNREACHABLE } from "../../../src/cli/admin-client.ts";
import { CliFailure } from "../../../src/cli/failure.ts";

test("an answer in HTML has the code of an unreachable gateway from status 500, and none below it", async (t) => {
  let status = 200;
  const server = createServer((_, response) => response.writeHead(status).end("<html>"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = await connectAdmin({ env: { TOLLGATE_ADMIN_URL: url, TOLLGATE_ADMIN_TOKEN: "token" }, fetch });
  for (const [answered, code] of [
    [200, undefined],
    [404, undefined],
    [502, UNREACHABLE],
    [503, UNREACHABLE],
  ] as const) {
    status = answered;
    const failure = await client.call("GET", "/accounts").catch((error: unknown) => error);
    assert.ok(failure instanceof CliFailure);
    assert.match(failure.message, /is not Tollgate's admin API/);
    assert.equal(failure.code, code, String(answered));
  }
});
