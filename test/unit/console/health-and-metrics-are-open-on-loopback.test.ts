import assert from "node:assert/strict";
import test from "node:test";
import { Secret } from "../../../src/values/secret.ts";
import { exchange } from "../../rig/raw-socket.ts";
import { ADMIN_TOKEN, startConsole } from "./running-console.ts";

const NO_TOKEN = { authorization: "" };

test("health and metrics answer without a token", async (t) => {
  const { ask } = await startConsole(t);
  const health = await ask("GET", "/healthz", undefined, NO_TOKEN);
  assert.equal(health.status, 200);
  const metrics = await ask("GET", "/metrics", undefined, NO_TOKEN);
  assert.equal(metrics.status, 200);
  assert.equal(metrics.headers.get("content-type"), "text/plain; version=0.0.4");
  assert.equal(metrics.text, "up 1\n");
  assert.equal((await ask("HEAD", "/healthz", undefined, NO_TOKEN)).status, 200);
});

test("readiness gives the reason for a refusal", async (t) => {
  let state = { ready: true, reasons: [] as string[], notes: ["worker 2 is starting"] };
  const { ask } = await startConsole(t, { readiness: () => state });
  const is = await ask("GET", "/readyz", undefined, NO_TOKEN);
  assert.deepEqual([is.status, is.json], [200, state]);
  state = { ready: false, reasons: ["draining"], notes: [] };
  const not = await ask("GET", "/readyz", undefined, NO_TOKEN);
  assert.equal(not.status, 503);
  assert.deepEqual(not.json, state);
  // Still alive: restarting a draining process would cut its streams.
  assert.equal((await ask("GET", "/healthz", undefined, NO_TOKEN)).status, 200);
});

test("metrics without a token are for programs on this machine that use a loopback name, and not for pages in its browser", async (t) => {
  for (const adminToken of [new Secret(ADMIN_TOKEN), undefined]) {
    const { url } = await startConsole(t, { adminToken });
    const port = Number(new URL(url).port);
    const statusOf = async (...headers: string[]) => {
      const [response] = await exchange({ port }, `${["GET /metrics HTTP/1.1", ...headers].join("\r\n")}\r\n\r\n`);
      return response?.status;
    };
    for (const host of ["127.0.0.1", `127.0.0.1:${port}`, "localhost", `LOCALHOST:${port}`, `[::1]:${port}`]) {
      assert.equal(await statusOf(`Host: ${host}`), 200, host);
    }
    const refused = adminToken ? 401 : 403;
    // An attacker's host name that now resolves to 127.0.0.1: the browser would give the answer to the attacker's page.
    for (const host of [
      "evil.example",
      `evil.example:${port}`,
      "127.0.0.1.evil.example",
      "localhost.evil.example",
      "10.0.0.1",
    ]) {
      assert.equal(await statusOf(`Host: ${host}`), refused, host);
    }
    assert.equal(await statusOf("Host: 127.0.0.1", "Origin: https://evil.example"), refused);
    assert.equal(await statusOf("Host: 127.0.0.1", "Sec-Fetch-Site: cross-site"), refused);
    assert.equal(await statusOf("Host: 127.0.0.1", "Sec-Fetch-Site: none"), 200, "the user typed the address");
    if (adminToken) assert.equal(await statusOf("Host: evil.example", `Authorization: Bearer ${ADMIN_TOKEN}`), 200);
  }
});

test("metrics requested through a local proxy need the token", async (t) => {
  const { ask } = await startConsole(t);
  const forwarded = { "x-forwarded-for": "203.0.113.7" };
  assert.equal((await ask("GET", "/metrics", undefined, { ...NO_TOKEN, ...forwarded })).status, 401);
  assert.equal((await ask("GET", "/metrics", undefined, forwarded)).status, 200);
});
