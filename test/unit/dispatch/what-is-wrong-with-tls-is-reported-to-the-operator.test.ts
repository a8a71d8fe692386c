/** docs/failure-model.md rows C1 and 70: a connection that fails because of TLS is no fault of the client's request. */
import assert from "node:assert/strict";
import { createServer as createHttpServer, type IncomingMessage } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer, type Socket } from "node:net";
import { suite, test } from "node:test";
import type { UpstreamSettings } from "../../../src/values/settings.ts";
import { selfSigned } from "../../rig/certificates.ts";
import { ask, listening, refusalIn, replying, rig, route, timeouts, upstream } from "./rig.ts";

/** Asks an upstream that fails: the cause for the client, what the operator reads, and the attempts. */
async function failing(t: test.TestContext, base: string, more: Partial<UpstreamSettings> = {}) {
  const { dispatcher, warnings, turns } = rig(t, [upstream("east", base, more)]);
  const result = await dispatcher.run(ask([route("east")], { stream: false }));
  return {
    cause: refusalIn(result).cause,
    warned: warnings.map(({ kind, reason }) => `${kind}: ${reason}`),
    attempts: result.attempts.map(({ refusedByUpstream, sentToUpstream }) => ({ refusedByUpstream, sentToUpstream })),
    turns,
  };
}

for (const [how, cut] of [
  ["ended", (socket: Socket) => socket.end()],
  ["reset", (socket: Socket) => socket.resetAndDestroy()],
] as const) {
  test(`a connection that is ${how} in the TLS handshake is reported, counts as a failure, and is tried once more`, async (t) => {
    const server = createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => cut(socket));
    });
    const { health } = upstream("", "http://127.0.0.1");
    const base = await listening(t, server, "https", "localhost");
    assert.deepEqual(await failing(t, base, { health: { ...health, failures: 2 } }), {
      cause: "upstream_unavailable",
      warned: ["tls: ECONNRESET in the TLS handshake"],
      attempts: Array(2).fill({ refusedByUpstream: false, sentToUpstream: false }),
      turns: ["east: failures"],
    });
  });
}

for (const scheme of ["http", "https"]) {
  test(`a connection over ${scheme} that is reset after the request is no fault of TLS`, async (t) => {
    const identity = selfSigned();
    const connections: Socket[] = [];
    const reset = (request: IncomingMessage) =>
      request.resume().once("end", () => {
        for (const connection of connections) connection.resetAndDestroy();
      });
    const server = scheme === "http" ? createHttpServer(reset) : createHttpsServer(identity, reset);
    server.on("connection", (connection: Socket) => connections.push(connection));
    const tls = { ca: identity.cert, identity: undefined, serverName: undefined };
    const found = await failing(t, await listening(t, server, scheme, "localhost"), { tls });
    assert.deepEqual([found.cause, found.warned], ["upstream_unavailable", []]);
    assert.deepEqual(found.attempts[0], { refusedByUpstream: false, sentToUpstream: true });
  });
}

test("a server that demands a client certificate after the handshake has read nothing, and is not asked again", async (t) => {
  const identity = selfSigned();
  const demanding = { requestCert: true, rejectUnauthorized: true, minVersion: "TLSv1.3" } as const;
  const server = createHttpsServer({ ...identity, ca: identity.cert, ...demanding });
  server.on("tlsClientError", () => {});
  const base = await listening(t, server, "https", "localhost");
  const tls = { ca: identity.cert, identity: undefined, serverName: undefined };
  assert.deepEqual(await failing(t, base, { tls }), {
    cause: "upstream_unavailable",
    warned: ["tls: ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED"],
    attempts: [{ refusedByUpstream: true, sentToUpstream: true }],
    turns: [],
  });
});

test("a server that leaves the handshake unanswered for too long is reported as unreachable", async (t) => {
  const server = createServer((socket) => socket.on("error", () => {}).resume());
  const base = await listening(t, server, "https", "localhost");
  const { cause, warned } = await failing(t, base, timeouts({ connectMs: 1 }));
  assert.equal(cause, "upstream_timeout");
  assert.deepEqual(
    warned.map((text) => text.split(":")[0]),
    ["unreachable"],
  );
});

suite("a 400 about TLS", () => {
  const nginx = (words: string) =>
    `<html>\r\n<head><title>400 ${words}</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>\r\n<center>${words}</center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n`;
  const apache =
    "<p>Your browser sent a request that this server could not understand.<br />\nReason: You're speaking plain HTTP to an SSL-enabled server port.<br />\n Instead use the HTTPS scheme to access this URL, please.<br />\n</p>";
  const page = (body: string, type = "text/html", status = "400 Bad Request") =>
    `HTTP/1.1 ${status}\r\ncontent-type: ${type}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

  for (const [body, reason] of [
    [nginx("No required SSL certificate was sent"), "it demands a client certificate"],
    [nginx("The SSL certificate error"), "it refuses the client certificate"],
    [nginx("The plain HTTP request was sent to HTTPS port"), "it expects TLS at this port"],
    ["Client sent an HTTP request to an HTTPS server.\n", "it expects TLS at this port"],
    [apache, "it expects TLS at this port"],
  ] as const) {
    test(`is the operator's fault and ejects the upstream: ${reason}`, async (t) => {
      const { health } = upstream("", "http://127.0.0.1");
      const found = await failing(t, await replying(t, page(body)), { health: { ...health, failures: 1 } });
      assert.deepEqual(found, {
        cause: "upstream_unavailable",
        warned: [`tls: status 400: ${reason}`],
        attempts: [{ refusedByUpstream: true, sentToUpstream: true }],
        turns: ["east: failures"],
      });
    });
  }

  for (const [what, reply] of [
    ["another page", page(nginx("Request Header Or Cookie Too Large"))],
    ["a page that quotes a request", page("<p>Blocked: &lt;center&gt;The SSL certificate error&lt;/center&gt;</p>")],
    ["an error that quotes a request", page('{"error":{"message":"<center>The SSL certificate error</center>"}}')],
  ] as const) {
    test(`is only what these servers send themselves: ${what} is the client's fault`, async (t) => {
      const { cause, warned } = await failing(t, await replying(t, reply));
      assert.deepEqual([cause, warned], ["upstream_rejected", []]);
    });
  }
});
