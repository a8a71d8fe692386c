/**
 * docs/failure-model.md row H1: no framing, method or `Connection` header turns one request into two on the way to the
 * site.
 */
import assert from "node:assert/strict";
import test from "node:test";
import { startRawSite } from "../../../rig/raw-site.ts";
import { exchange } from "../../../rig/raw-socket.ts";
import { startEcho } from "../echo.ts";
import { assertHeld, attackAll } from "./attacks.ts";

for (const pace of ["in one piece", "the head first"] as const) {
  test(`row H1: every method, framing and Connection header, ${pace}`, async (t) => {
    const site = await startRawSite(t);
    const echo = await startEcho(t, { siteUrl: () => site.url });
    const outcomes = await attackAll(echo.target, site, pace);
    assertHeld(outcomes);
    assert.ok(
      outcomes.every(({ status }) => status === 200),
      "no request is refused",
    );
    assert.deepEqual(echo.crashes, []);
  });
}

test("row H1: a body has the same framing at the site as at the gateway, given by one header", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url });
  const framings = [
    ["", "", "none"],
    ["Content-Length: 0\r\n", "", "length"],
    ["Content-Length: 005\r\n", "hello", "length"],
    ["Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n", "chunked"],
    // CGI servers would mistake these for the real headers.
    ["content_length: 5\r\ntransfer_encoding: chunked\r\nContent-Length: 4\r\n", "body", "length"],
  ] as const;
  for (const method of ["GET", "HEAD", "POST", "DELETE", "OPTIONS", "PURGE"]) {
    for (const [header, body, framing] of framings) {
      await exchange(echo.target, `${method} /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${header}\r\n${body}`);
      const seen = site.requests.at(-1);
      assert.deepEqual([seen?.method, seen?.framing], [method, framing]);
      const about = seen?.headers.filter(([name]) => /content.length|transfer.encoding|trailer/.test(name)) ?? [];
      assert.equal(about.length, framing === "none" ? 0 : 1, `${method} ${header}`);
      // Some servers would read 010 as octal eight.
      if (framing === "length") assert.equal(about[0]?.[1], String(body.length));
    }
  }
});

test("row H1, 76: Connection and other spellings neither remove the gateway's headers nor add forged ones", async (t) => {
  const site = await startRawSite(t);
  const echo = await startEcho(t, { siteUrl: () => site.url, trustProxy: ["127.0.0.1/32"] });
  const sent = [
    "GET /x HTTP/1.1",
    "Host: site.test",
    "Connection: host, x-forwarded-for, x-forwarded-proto, x-own, close",
    "X-Forwarded-For: 6.6.6.6, 192.0.2.1",
    "X_Forwarded_For: 6.6.6.6",
    "X-Forwarded-Proto: https",
    "X_Forwarded_Proto: http",
    "X-Real-IP: 6.6.6.6",
    "X_Real_IP: 6.6.6.6",
    "Forwarded: for=6.6.6.6",
    "Proxy: http://6.6.6.6/",
    "X-Own: 1",
    "Keep-Alive: 5",
    "TE: trailers",
    "Upgrade: h2c",
    "HTTP2-Settings: AA",
    "X-Kept: 1",
    "",
    "",
  ];
  await exchange(echo.target, sent.join("\r\n"));
  assert.deepEqual(site.requests[0]?.headers, [
    ["host", "site.test"],
    ["x-forwarded-proto", "https"],
    ["x-kept", "1"],
    ["x-forwarded-for", "192.0.2.1"],
    ["connection", "close"],
  ]);
});
