/**
 * Paths, ids and headers through a front: Tollgate receives the path byte for byte, the client gets Tollgate's answers
 * and request ids, and the site and its WebSockets work.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { startGatewayHere } from "../../../rig/gateway.ts";
import { exchange } from "../../../rig/raw-socket.ts";
import { ask, bodyOf } from "../../protocol/whole/asking.ts";
import { behindFront, behindOf, FRONTS, type Front } from "./fronts.ts";

const TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/** A site that records its requests and echoes WebSockets. */
async function startSite() {
  const seen: IncomingMessage[] = [];
  const server = createServer((req, res) => {
    seen.push(req);
    res.end(`site ${req.url}`);
  });
  server.on("upgrade", (_req, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n");
    socket.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { seen, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

for (const kind of FRONTS) {
  test(kind.name, async (t) => {
    const site = await startSite();
    const here = await startGatewayHere({ config: behindFront({ site: site.url }) });
    const front = await kind.start([behindOf(here)]);
    const { key } = await here.account();
    try {
      await t.test("the client gets Tollgate's request id, and the front its own", async () => {
        const reply = await ask(front, "messages", key, {}, { headers: { "x-request-id": "mine" } });
        const id = reply.headers.get("x-request-id");
        assert.match(id ?? "", /^req_[0-9A-Za-z]{24}$/);
        assert.equal(reply.headers.get("request-id"), id);
        assert.equal(reply.headers.get("x-envoy-upstream-service-time"), null);
        await reply.arrayBuffer();
        assert.equal((await here.requestEnd(id as string)).status, 200);
      });
      await pathsStayAsTheyAre(t, front, key);
      await t.test("the site: GET, HEAD, forwarded headers, names with underscores", async () => {
        const headers = { session_id: "s-1", traceparent: TRACEPARENT, "x-forwarded-for": "6.6.6.6" };
        const reply = await fetch(`${front.url}/page?q=1`, { headers });
        assert.equal(await reply.text(), "site /page?q=1");
        const got = site.seen.at(-1)?.headers ?? {};
        assert.equal(got.session_id, "s-1");
        assert.equal(got.traceparent, TRACEPARENT);
        assert.ok(!got["x-forwarded-for"]?.includes("6.6.6.6"));
        const head = await fetch(`${front.url}/page`, { method: "HEAD" });
        assert.deepEqual([head.status, await head.text()], [200, ""]);
      });
      await t.test("HEAD on a model path is 200; an upgrade of /v1/responses is 426", async () => {
        assert.equal((await fetch(`${front.url}/v1/messages`, { method: "HEAD" })).status, 200);
        const res = await upgrade(front.port, "/v1/responses");
        assert.equal(res.status, 426);
      });
      await t.test("WebSockets reach the site", async () => {
        const { status, echo } = await upgrade(front.port, "/socket");
        assert.deepEqual([status, echo], [101, "hello"]);
      });
      await t.test("admin paths are not reachable from outside", async () => {
        for (const path of ["/v1/../metrics", "/metrics", "/healthz", "/readyz", "/admin/v1/accounts"]) {
          const [reply] = await exchange({ port: front.port }, `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
          assert.ok(reply && !/tollgate_|"alive"|"ready"|"accounts"/.test(reply.body), path);
        }
      });
    } finally {
      await front.stop();
      await here.close();
      site.server.close();
      site.server.closeAllConnections();
    }
  });
}

/** docs/failure-model.md row 16: no front corrects a wrong path, and none breaks a right one. */
async function pathsStayAsTheyAre(t: TestContext, front: Front, key: string): Promise<void> {
  const body = JSON.stringify(bodyOf("messages"));
  const post = async (path: string) => {
    const head = `POST ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json`;
    const [reply] = await exchange({ port: front.port }, `${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    return reply;
  };
  await t.test("a path that is not written exactly is 404", async () => {
    const wrong = ["//v1/messages", "/v1//messages", "/v1/messages/", "/V1/messages", "/v1%2fmessages"];
    wrong.push("/x/../v1/messages", "/v1/./messages", "/%761/messages", "/v1/v1/messages", "/v1/messages;x");
    for (const path of wrong) {
      const reply = await post(path);
      assert.equal(reply?.status, 404, path);
      assert.match(reply.headers["x-request-id"] ?? "", /^req_/, `${path}: the answer is Tollgate's`);
    }
    assert.equal((await post("/v1/messages?beta=true"))?.status, 200);
  });
}

/** Requests a WebSocket, and sends hello if it is accepted. */
function upgrade(port: number, path: string): Promise<{ status: number; echo?: string }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; echo?: string }>();
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
  };
  request({ host: "127.0.0.1", port, path, headers, agent: false })
    .on("response", (res) => {
      res.resume();
      resolve({ status: res.statusCode ?? 0 });
    })
    .on("upgrade", (res, socket) => {
      socket.once("data", (data: Buffer) => {
        socket.destroy();
        resolve({ status: res.statusCode ?? 0, echo: String(data) });
      });
      socket.write("hello");
    })
    .on("error", reject)
    .end();
  return promise;
}
