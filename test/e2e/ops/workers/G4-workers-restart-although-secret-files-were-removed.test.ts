/**
 * docs/failure-model.md row G4: the files with the startup secrets are removed, then every worker is killed. All
 * workers are restarted with the secrets that the gateway started with; a start of the gateway itself says what is
 * missing.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import test from "node:test";
import { ask } from "../../protocol/whole/asking.ts";
import { metricSum, metricsPage, untilAllServe, workerPids, workersScene } from "./rig.ts";

test("three workers, all killed after their secrets were removed, are restarted", async (t) => {
  const scene = await workersScene(t, { password: "the-password-of-the-start" });
  const place = createServer().listen(0, "127.0.0.1");
  await once(place, "listening");
  const { port } = place.address() as AddressInfo;
  place.close();
  await once(place, "close");
  const store = join(scene.dir, "store");
  const key = join(scene.dir, "sealing-key");
  writeFileSync(store, scene.storeUrl);
  writeFileSync(key, "test-sealing-key-of-32-characters-or-more\n");
  // Port 0 would be another port once all workers are gone.
  const change = { listen: `127.0.0.1:${port}`, store: `file:${store}`, sealing_keys: [`file:${key}`] };
  const gateway = await scene.start(3, change);
  rmSync(store);
  rmSync(key);
  // Noticed without a signal, and refused: nothing changes.
  const refused = await gateway.line("configuration refused");
  assert.match(refused, /sealing_keys.*cannot be read \(ENOENT\)/);
  const pids = workerPids(gateway);
  for (const pid of pids.values()) process.kill(pid, "SIGKILL");
  for (const worker of pids.keys()) await gateway.line(`"worker":${worker},"code":null,"signal":"SIGKILL"`);
  await untilAllServe(gateway);
  for (const [worker, pid] of workerPids(gateway)) assert.notEqual(pid, pids.get(worker));
  for (let i = 0; i < 3; i++) {
    const reply = await ask(gateway, "chat", scene.account.key, {}, { headers: { connection: "close" } });
    assert.equal(reply.status, 200, await reply.text());
  }
  const page = await metricsPage(gateway);
  assert.equal(metricSum(page, "tollgate_worker_ends_total", 'cause="killed"'), 3);
  assert.equal(metricSum(page, "tollgate_config_last_reload_success"), 0);
  assert.equal(metricSum(page, "tollgate_config_generation"), 1);
  assert.equal(await gateway.stop("SIGTERM"), 0, gateway.output());
  await assert.rejects(scene.start(3, change), /cannot be read \(ENOENT\); a secret was expected/);
});
