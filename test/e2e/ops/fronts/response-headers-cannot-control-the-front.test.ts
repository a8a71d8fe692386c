/**
 * docs/failure-model.md row 61 with a real nginx: a header of an answer cannot make nginx serve one of its own files.
 * Tollgate lets no such header through; and nginx would ignore one that came through.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { startNginx } from "../../../rig/nginx.ts";
import { ask } from "../../protocol/whole/asking.ts";
import { behindFront, behindOf, FRONTS } from "./fronts.ts";

const COMMANDS = { "x-accel-redirect": "/protected/x", "x-accel-limit-rate": "1", "x-sendfile": "/etc/hostname" };
const INTERNAL = "INTERNAL FILE";
/** An internal location, as a site in the same nginx may have. */
const withInternal = (text: string) =>
  text.replace("    location / {", `    location /protected { internal; return 200 "${INTERNAL}"; }\n    location / {`);

for (const kind of FRONTS) {
  test(`${kind.name}: commands in a model server's headers do not reach the client or the front`, async () => {
    const here = await startGatewayHere({ config: behindFront() });
    const front =
      kind.name === "nginx"
        ? await startNginx({ servers: [`127.0.0.1:${behindOf(here).listen}`], edit: withInternal })
        : await kind.start([behindOf(here)]);
    const { key } = await here.account();
    try {
      here.simulator.program({ text: "from the model", fault: { extraHeaders: COMMANDS } }, { times: 2 });
      for (const stream of [false, true]) {
        const reply = await ask(front, "chat", key, { stream });
        assert.equal(reply.status, 200);
        for (const name of Object.keys(COMMANDS)) assert.equal(reply.headers.get(name), null, name);
        assert.ok(!(await reply.text()).includes(INTERNAL));
      }
      const direct = await fetch(`${front.url}/protected/x`);
      assert.ok(!(await direct.text()).includes(INTERNAL));
    } finally {
      await front.stop();
      await here.close();
    }
  });
}

test("nginx: a command that came through all the same would be ignored", async () => {
  assert.equal(await commanded(withInternal), "from behind");
});

test("nginx without proxy_ignore_headers would obey: the test above can fail", async () => {
  assert.equal(await commanded((text) => withInternal(text).replace(/^ *proxy_ignore_headers.*$/m, "")), INTERNAL);
});

/** Runs a server that sends commands directly behind nginx. @returns what its client gets. */
async function commanded(edit: (text: string) => string): Promise<string> {
  const server = createServer((_req, res) => {
    res.writeHead(200, { "content-type": "text/plain", "x-accel-redirect": "/protected/x" });
    res.end("from behind");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const front = await startNginx({ servers: [`127.0.0.1:${(server.address() as AddressInfo).port}`], edit });
  try {
    return await (await fetch(`${front.url}/v1/models`)).text();
  } finally {
    await front.stop();
    server.close();
    server.closeAllConnections();
  }
}
