/**
 * ARCHITECTURE.md promise 12, and docs/failure-model.md rows A6 and 81: SIGTERM under a running stream, and a process
 * without `__proto__`.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { type GatewayProcess, spawnGateway, testConfig } from "../../../rig/gateway.ts";
import { ask, PROTOCOL_LIST } from "./asking.ts";

const ADMIN = { authorization: "Bearer test-admin-token", "content-type": "application/json" };

/** Creates an account with funds and a key over the admin API. */
async function keyOf({ adminUrl }: GatewayProcess): Promise<string> {
  const post = async (path: string, body: object) => {
    const reply = await fetch(`${adminUrl}/admin/v1${path}`, {
      method: "POST",
      headers: ADMIN,
      body: JSON.stringify(body),
    });
    assert.ok(reply.ok, `${path}: ${reply.status} ${await reply.clone().text()}`);
    return (await reply.json()) as { key?: string };
  };
  await post("/accounts", { name: "drained" });
  await post("/accounts/drained/topups", { usd: "10.00", id: "pay-1" });
  const made = await post("/accounts/drained/keys", { group: "money" });
  assert.ok(made.key);
  return made.key;
}

test("row 81: a process without __proto__ serves all three protocols", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-noproto-"));
  const simulator = await startSimulator();
  const gateway = await spawnGateway(testConfig({ upstreamUrl: simulator.url, dir }), ["--disable-proto=delete"]);
  try {
    const key = await keyOf(gateway);
    for (const protocol of PROTOCOL_LIST) {
      for (const stream of [false, true]) {
        const reply = await ask(gateway, protocol, key, { stream });
        assert.equal(reply.status, 200, await reply.clone().text());
        await reply.text();
      }
    }
    assert.equal(await gateway.stop("SIGINT"), 0);
    assert.match(
      gateway.output(),
      /"event":"stopping"[^\n]*\n(.*\n)*.*"event":"stopped"[^\n]*\n$/,
      "the last log line is the `stopped` event",
    );
  } finally {
    await gateway.stop("SIGKILL");
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

test("SIGTERM: late requests are served with connection: close, the stream finishes, the exit is 0", async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-drain-"));
  const simulator = await startSimulator();
  const text = `${testConfig({ upstreamUrl: simulator.url, dir })}drain: {lame_duck: 3s, deadline: 30s}\n`;
  const gateway = await spawnGateway(text);
  try {
    const key = await keyOf(gateway);
    const before = await ask(gateway, "chat", key);
    assert.notEqual(before.headers.get("connection"), "close");
    simulator.hold();
    const asked = simulator.count;
    const running = ask(gateway, "chat", key, { stream: true });
    await simulator.waitFor(asked + 1);
    gateway.child.kill("SIGTERM");
    await untilStatus(`${gateway.adminUrl}/readyz`, 503);
    assert.equal((await fetch(`${gateway.adminUrl}/healthz`)).status, 200, "a draining gateway is still healthy");
    const late = ask(gateway, "messages", key);
    await simulator.waitFor(asked + 2);
    simulator.release();
    const served = await late;
    assert.equal(served.status, 200);
    assert.equal(served.headers.get("connection"), "close");
    const stream = await running;
    assert.ok((await stream.text()).endsWith("data: [DONE]\n\n"));
    assert.equal(await gateway.stop("SIGCONT"), 0);
    await assert.rejects(ask(gateway, "chat", key), "the port is closed");
  } finally {
    simulator.release();
    await gateway.stop("SIGKILL");
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
  }
});

/** Sends requests until the answer has this status; there is no bound on when a signal reaches a process. */
async function untilStatus(url: string, status: number): Promise<void> {
  for (;;) {
    const reply = await fetch(url);
    await reply.arrayBuffer();
    if (reply.status === status) return;
  }
}
