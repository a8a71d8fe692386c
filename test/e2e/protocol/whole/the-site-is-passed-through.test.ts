/**
 * docs/failure-model.md rows H1 to H7 in short: paths that do not belong to the API go to the operator's site,
 * including WebSockets.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import test, { after, before } from "node:test";
import { type GatewayHere, startGatewayHere, testConfig } from "../../../rig/gateway.ts";

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

let site: Server;
let here: GatewayHere;
const seen: Seen[] = [];
let onSite: (req: IncomingMessage, socket: Socket) => void = () => {};

before(async () => {
  site = createServer(async (req, res) => {
    if (req.url === "/cut") {
      res.writeHead(200, { "content-length": "100" });
      res.write("half", () => onSite(req, req.socket));
      return;
    }
    if (req.url === "/wait") {
      onSite(req, req.socket);
      return;
    }
    let body = "";
    for await (const piece of req) body += piece;
    seen.push({ method: req.method ?? "", url: req.url ?? "", headers: req.headers, body });
    res.writeHead(201, {
      "content-type": "text/plain",
      "set-cookie": ["a=1", "b=2"],
      "x-accel-redirect": "/protected",
      connection: "x-secret",
      "x-secret": "hop",
    });
    res.end(`site ${req.url}`);
  });
  site.on("upgrade", (req, socket) => {
    seen.push({ method: req.method ?? "", url: req.url ?? "", headers: req.headers, body: "" });
    socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n");
    socket.pipe(socket);
  });
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  const { port } = site.address() as AddressInfo;
  here = await startGatewayHere({ config: (places) => `${testConfig(places)}site: http://127.0.0.1:${port}\n` });
});

after(async () => {
  await here.close();
  site.closeAllConnections();
  site.close();
});

test("a page is requested with its query, body and cookies, and returned with its own status and cookies", async () => {
  const reply = await fetch(`${here.url}/console/login?next=%2F`, {
    method: "POST",
    headers: { cookie: "session=1", "content-type": "application/x-www-form-urlencoded" },
    body: "user=a",
  });
  assert.equal(reply.status, 201);
  assert.equal(await reply.text(), "site /console/login?next=%2F");
  assert.deepEqual(reply.headers.getSetCookie(), ["a=1", "b=2"]);
  const last = seen.at(-1);
  assert.equal(last?.body, "user=a");
  assert.equal(last?.headers.cookie, "session=1");
});

test("61, 62: headers that would make nginx serve a file, and hop-by-hop headers, are not returned", async () => {
  const reply = await fetch(`${here.url}/page`);
  assert.equal(reply.headers.get("x-accel-redirect"), null);
  assert.equal(reply.headers.get("x-secret"), null);
});

test("a key never reaches the site, and a POST with a key or JSON gets the built-in page with its hint", async () => {
  const { key } = await here.account();
  const before = seen.length;
  const posted = await fetch(`${here.url}/`, { method: "POST", headers: { "x-api-key": key }, body: "{}" });
  assert.equal(posted.status, 200);
  assert.match(posted.headers.get("content-type") ?? "", /^text\/html/);
  assert.ok(posted.headers.get("x-tollgate-hint"));
  assert.equal(seen.length, before);
  await fetch(`${here.url}/page`, { headers: { authorization: `Bearer ${key}`, "x-api-key": key } });
  const last = seen.at(-1);
  assert.equal(last?.headers.authorization, undefined);
  assert.equal(last?.headers["x-api-key"], undefined);
  await fetch(`${here.url}/page`, { headers: { authorization: "Bearer the-sites-own" } });
  assert.equal(seen.at(-1)?.headers.authorization, "Bearer the-sites-own");
});

test("76: a forwarding header of an untrusted client does not reach the site", async () => {
  await fetch(`${here.url}/page`, {
    headers: { "x-forwarded-for": "6.6.6.6", "x-real-ip": "6.6.6.6", forwarded: "for=6.6.6.6" },
  });
  const { headers } = seen.at(-1) as Seen;
  assert.ok(!JSON.stringify(headers).includes("6.6.6.6"));
});

test("API paths never go to the site", async () => {
  const before = seen.length;
  for (const path of ["/v1/nothing", "/V1/messages", "//v1/messages", "/%761/messages"]) {
    assert.equal((await fetch(here.url + path)).status, 404, path);
  }
  assert.equal(seen.length, before);
});

test("a reply that breaks off is a broken reply for the client", async () => {
  // Cut only after its beginning has come through the gateway; otherwise there would be nothing to break off.
  const begun = Promise.withResolvers<void>();
  onSite = (_req, socket) => void begun.promise.then(() => socket.destroy());
  const reply = await fetch(`${here.url}/cut`);
  begun.resolve();
  await assert.rejects(reply.text());
});

test("a client that disconnects ends the request to the site", async () => {
  const left = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  onSite = (_req, socket) => {
    arrived.resolve();
    socket.on("close", () => left.resolve());
  };
  const request = httpRequest(`${here.url}/wait`);
  request.on("error", () => {});
  request.end();
  await arrived.promise;
  request.destroy();
  await left.promise;
});

test("a WebSocket is passed through in both directions", async () => {
  const socket = connect(here.port, "127.0.0.1");
  const received: string[] = [];
  const echoed = Promise.withResolvers<void>();
  socket.on("data", (data) => {
    received.push(String(data));
    if (received.join("").endsWith("ping-bytes")) echoed.resolve();
    else if (received.join("").includes("\r\n\r\n")) socket.write("ping-bytes");
  });
  socket.write(
    "GET /live HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nx-api-key: sk-secret\r\n\r\n",
  );
  await echoed.promise;
  assert.match(received.join(""), /^HTTP\/1\.1 101 /);
  assert.equal(seen.at(-1)?.headers["x-api-key"], undefined);
  socket.destroy();
});

test("a WebSocket on an API path is refused with 426, so that clients fall back at once", async () => {
  const socket = connect(here.port, "127.0.0.1");
  socket.write("GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
  const [data] = (await once(socket, "data")) as [Buffer];
  assert.match(String(data), /^HTTP\/1\.1 426 /);
  socket.destroy();
});

test("an unreachable site is a 502 with an explanation, and the API keeps working", async () => {
  const away = await startGatewayHere({ config: (places) => `${testConfig(places)}site: http://127.0.0.1:1\n` });
  const reply = await fetch(`${away.url}/page`);
  assert.equal(reply.status, 502);
  assert.match(await reply.text(), /does not answer/);
  assert.equal((await fetch(`${away.url}/v1/models`)).status, 401);
  await away.close();
});
