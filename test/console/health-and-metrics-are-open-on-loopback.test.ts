import assert from "node:assert/strict";
import test from "node:test";
import { startConsole } from "./running-console.ts";

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

test("readiness says why not", async (t) => {
  let state: { ready: boolean; reasons: string[] } = { ready: true, reasons: [] };
  const { ask } = await startConsole(t, { readiness: () => state });
  assert.equal((await ask("GET", "/readyz", undefined, NO_TOKEN)).status, 200);
  state = { ready: false, reasons: ["draining"] };
  const not = await ask("GET", "/readyz", undefined, NO_TOKEN);
  assert.equal(not.status, 503);
  assert.deepEqual(not.json, { ready: false, reasons: ["draining"] });
  // Alive all the same: restarting a draining process would cut its streams.
  assert.equal((await ask("GET", "/healthz", undefined, NO_TOKEN)).status, 200);
});

test("metrics that a local proxy asks for on behalf of somebody need the token", async (t) => {
  const { ask } = await startConsole(t);
  const forwarded = { "x-forwarded-for": "203.0.113.7" };
  assert.equal((await ask("GET", "/metrics", undefined, { ...NO_TOKEN, ...forwarded })).status, 401);
  assert.equal((await ask("GET", "/metrics", undefined, forwarded)).status, 200);
});
