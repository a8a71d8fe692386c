/**
 * The reader of standard output closes it (`serve | tee log`, and tee ends): the gateway continues to serve, and still
 * shuts down normally.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { spawnGateway, testConfig } from "../../../rig/gateway.ts";
import { ask } from "./asking.ts";

const REQUESTS = 20;

test("requests are served and the exit is 0 after standard output was closed", async (t) => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-log-"));
  const simulator = await startSimulator();
  const text = testConfig({ upstreamUrl: simulator.url, dir });
  const gateway = await spawnGateway(`${text}drain: {lame_duck: 100ms, deadline: 1s}\n`);
  t.after(async () => {
    await gateway.stop("SIGKILL");
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
  });
  for (const stream of [gateway.child.stdout, gateway.child.stderr]) {
    stream?.destroy();
    if (stream && !stream.closed) await once(stream, "close");
  }
  for (let i = 0; i < REQUESTS; i++) {
    const reply = await ask(gateway, "chat", "sk-nobody's");
    assert.equal(reply.status, 401, await reply.text());
  }
  assert.equal(await gateway.stop("SIGTERM"), 0);
});
