/** A large configuration is loaded once, in a thread of the parent, and every worker gets the result. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import process from "node:process";
import test from "node:test";
import { THREAD_CHARS_MIN } from "../../../../src/config/watch.ts";
import { hasThread } from "../../../rig/threads.ts";
import { ask } from "../../protocol/whole/asking.ts";
import { CHARGE_NANO_USD, metricSum, metricsPage, untilAllServe, workerPids, workersScene } from "./rig.ts";

const ROUND = 8;

test("doubled prices of a large file reach two workers, and the one that replaces a killed one", async (t) => {
  const scene = await workersScene(t);
  const padding = `# ${"x".repeat(THREAD_CHARS_MIN)}\n`;
  const gateway = await scene.start(2);
  const text = scene.text(2);
  const round = () =>
    Promise.all(
      Array.from({ length: ROUND }, async () => {
        const reply = await ask(gateway, "chat", scene.account.key, {}, { headers: { connection: "close" } });
        assert.equal(reply.status, 200, await reply.text());
      }),
    );
  const reloaded = gateway.line("configuration reloaded");
  writeFileSync(
    gateway.file,
    padding + text.replaceAll('input: "1"', 'input: "2"').replaceAll('output: "10"', 'output: "20"'),
  );
  gateway.child.kill("SIGHUP");
  assert.ok(await hasThread(gateway.child.pid as number, "configuration", reloaded), "a thread loads it");
  await reloaded;
  const page = await metricsPage(gateway);
  for (const worker of [1, 2]) {
    assert.equal(metricSum(page, "tollgate_worker_config_generation", `worker="${worker}"`), 2);
  }
  await round();
  process.kill(workerPids(gateway).get(2) as number, "SIGKILL");
  await gateway.line('"msg":"a worker has ended"');
  await untilAllServe(gateway);
  await round();
  assert.equal(await gateway.stop("SIGTERM"), 0);
  const { ledger } = await scene.state();
  const charges = ledger.filter(({ kind }) => kind === "usage").map(({ amount }) => amount);
  assert.deepEqual(new Set(charges), new Set([2n * CHARGE_NANO_USD]));
  assert.equal(charges.length, 2 * ROUND);
});
