/**
 * docs/failure-model.md row H4: a site behind TLS must be the one that the configuration names, whatever host a visitor
 * requests.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { getCACertificates, setDefaultCACertificates, type TLSSocket } from "node:tls";
import { type Certificate, selfSigned } from "../../../rig/certificates.ts";
import { exchange, RawSocket } from "../../../rig/raw-socket.ts";
import { startEcho } from "../echo.ts";

/** Longer than the connect timeout of these tests. */
const SLOW_MS = 500;

async function start(t: TestContext, certificate: Certificate) {
  const names: (string | false | null | undefined)[] = [];
  const resumed: boolean[] = [];
  const server = createServer(certificate, (req, res) => {
    const socket = req.socket as TLSSocket;
    names.push(socket.servername);
    resumed.push(socket.isSessionReused());
    setTimeout(() => res.end(`site ${req.headers.host}`), req.headers["x-slow"] ? SLOW_MS : 0);
  });
  server.on("upgrade", (req, socket) => {
    names.push((req.socket as TLSSocket).servername);
    socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n");
    socket.on("error", () => {});
    socket.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return { names, resumed, port: (server.address() as AddressInfo).port };
}

const get = (host: string, ...headers: string[]) =>
  ["GET /page HTTP/1.1", `Host: ${host}`, ...headers, "", ""].join("\r\n");

test("row H4: pages, resumed sessions and WebSockets work; the visitor's host is passed on and never used as the TLS server name", async (t) => {
  const certificate = selfSigned();
  const authorities = getCACertificates("default");
  setDefaultCACertificates([...authorities, certificate.cert]);
  t.after(() => setDefaultCACertificates(authorities));
  const site = await start(t, certificate);
  const echo = await startEcho(t, { siteUrl: () => `https://localhost:${site.port}` });
  for (const host of ["public.test", "evil.test", "127.0.0.1"]) {
    const [answer] = await exchange(echo.target, get(host));
    assert.deepEqual([answer?.status, answer?.body], [200, `site ${host}`]);
  }
  const client = new RawSocket(echo.target).send(get("evil.test", "Connection: Upgrade", "Upgrade: websocket"));
  await client.until((text) => text.startsWith("HTTP/1.1 101 ") && text.includes("\r\n\r\n"));
  client.send("ping");
  await client.until((text) => text.endsWith("ping"));
  client.close();
  const short = await startEcho(t, { siteUrl: () => `https://localhost:${site.port}`, siteLimits: { connectMs: 250 } });
  assert.equal(
    (await exchange(short.target, get("a", "X-Slow: 1")))[0]?.status,
    200,
    "the time to connect does not limit the answer",
  );
  assert.deepEqual(new Set(site.names), new Set(["localhost"]));
  assert.ok(site.resumed.includes(true), "a later connection resumes the TLS session");
  // The certificate is for another name.
  const other = await startEcho(t, { siteUrl: () => `https://127.0.0.1:${site.port}` });
  assert.equal((await exchange(other.target, get("localhost")))[0]?.status, 502);
});

test("row H4: an untrusted certificate is 502, whatever the environment says", async (t) => {
  const certificate = selfSigned();
  const site = await start(t, certificate);
  const echo = await startEcho(t, { siteUrl: () => `https://localhost:${site.port}` });
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  t.after(() => {
    delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  });
  assert.equal((await exchange(echo.target, get("localhost")))[0]?.status, 502);
  assert.deepEqual(site.names, []);
});
