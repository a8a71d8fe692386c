/**
 * SIGHUP to the parent: every worker charges the new price, an invalid file changes none of them, and a new worker uses
 * the new one.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import test from "node:test";
import { CHECKOUT } from "../../../rig/gateway.ts";
import { ask } from "../../protocol/whole/asking.ts";
import {
  aMoment,
  CHARGE_NANO_USD,
  lines,
  metricSum,
  metricsPage,
  untilAllServe,
  workerPids,
  workersScene,
} from "./rig.ts";

const ROUND = 12;

test("doubled prices reach all three workers, and an invalid file changes none", async (t) => {
  const scene = await workersScene(t);
  // The checkout itself, as `npm start` uses it: its workers run another program than the parent (src/worker.ts).
  const gateway = await scene.start(3, undefined, { program: CHECKOUT });
  const file = gateway.file;
  const text = readFileSync(file, "utf8");
  const round = () =>
    Promise.all(
      Array.from({ length: ROUND }, async () => {
        const reply = await ask(gateway, "chat", scene.account.key, {}, { headers: { connection: "close" } });
        assert.equal(reply.status, 200, await reply.text());
      }),
    );
  const servedBy = () => new Set(lines(gateway).flatMap((line) => (line.msg === "request" ? [line.worker] : [])));
  await round();
  // A worker writes its lines after its answers were sent.
  await gateway.line('"msg":"request"', ROUND);
  assert.equal(servedBy().size, 3);

  writeFileSync(file, text.replaceAll('input: "1"', 'input: "2"').replaceAll('output: "10"', 'output: "20"'));
  gateway.child.kill("SIGHUP");
  await gateway.line("configuration reloaded");
  const page = await metricsPage(gateway);
  assert.equal(metricSum(page, "tollgate_config_last_reload_success"), 1);
  assert.equal(
    metricSum(page, "tollgate_config_reloads_total", "accepted"),
    1,
    "one reload is counted, not one for each process",
  );
  assert.equal(metricSum(page, "tollgate_config_generation"), 2, "one generation is counted, not one for each process");
  for (const worker of [1, 2, 3]) {
    assert.equal(metricSum(page, "tollgate_worker_config_generation", `worker="${worker}"`), 2);
    assert.equal(metricSum(page, "tollgate_worker_up", `worker="${worker}"`), 1);
  }
  await round();

  writeFileSync(file, "listen: nowhere\n");
  gateway.child.kill("SIGHUP");
  await gateway.line("configuration refused");
  await round();
  assert.equal(metricSum(await metricsPage(gateway), "tollgate_config_last_reload_success"), 0);
  process.kill(workerPids(gateway).get(3) as number, "SIGKILL");
  await gateway.line('"msg":"a worker has ended"');
  await untilAllServe(gateway);
  await round();
  assert.equal(await gateway.stop("SIGTERM"), 0);
  const { ledger } = await scene.state();
  const charges = ledger.filter(({ kind }) => kind === "usage").map(({ amount }) => amount);
  assert.equal(charges.filter((amount) => amount === CHARGE_NANO_USD).length, ROUND);
  assert.equal(charges.filter((amount) => amount === 2n * CHARGE_NANO_USD).length, 3 * ROUND);
});

test("if a reload takes effect late, a refusal of the next one is still reported", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(2);
  const page = () => metricsPage(gateway);
  const held = workerPids(gateway).get(2) as number;
  process.kill(held, "SIGSTOP");
  writeFileSync(gateway.file, readFileSync(gateway.file, "utf8").replaceAll('output: "10"', 'output: "20"'));
  gateway.child.kill("SIGHUP");
  while (metricSum(await page(), "tollgate_config_generation") < 2) await aMoment();
  writeFileSync(gateway.file, "listen: nowhere\n");
  gateway.child.kill("SIGHUP");
  await gateway.line("configuration refused");
  assert.doesNotMatch(gateway.output(), /configuration reloaded/, "one worker has not confirmed the reload");
  process.kill(held, "SIGCONT");
  await gateway.line("configuration reloaded");
  assert.equal(metricSum(await page(), "tollgate_config_reloads_total", "accepted"), 1);
  assert.equal(metricSum(await page(), "tollgate_config_last_reload_success"), 0);
});
