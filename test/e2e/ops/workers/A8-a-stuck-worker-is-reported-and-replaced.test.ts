/**
 * docs/failure-model.md row A8: one worker of several is stopped in mid-stream. Readiness reports it within seconds,
 * and a reload is not reported as in force before it is. A worker that continues has done no harm; one that does not is
 * killed, and its successor settles its requests.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import test from "node:test";
import { ask } from "../../protocol/whole/asking.ts";
import { CHAT_END } from "../fronts/fronts.ts";
import {
  CHARGE_NANO_USD,
  finish,
  lines,
  metricSum,
  metricsPage,
  openStreams,
  untilAllServe,
  untilReadiness,
  workerPids,
  workersScene,
} from "./rig.ts";

const STREAMS = 6;
const LATER = 4;

test("a worker stopped and continued does no harm, and one stopped for good is replaced", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(3);
  const readyz = `${gateway.adminUrl}/readyz`;
  const pid = workerPids(gateway).get(2) as number;
  const streams = await openStreams(scene, gateway.url, STREAMS);
  const reloads = () => lines(gateway).filter(({ msg }) => msg === "configuration reloaded").length;
  const generationOf2 = async () =>
    metricSum(await metricsPage(gateway), "tollgate_worker_config_generation", 'worker="2"');

  process.kill(pid, "SIGSTOP");
  const stuck = await untilReadiness(readyz, (_, status) => status === 503);
  assert.deepEqual(stuck.reasons, ["worker 2 does not answer"]);
  const text = readFileSync(gateway.file, "utf8");
  writeFileSync(gateway.file, text.replaceAll('output: "10"', 'output: "20"'));
  gateway.child.kill("SIGHUP");
  // The parent has accepted the reload; two workers use it, and worker 2 does not yet.
  for (let page = ""; metricSum(page, "tollgate_config_generation") !== 2; page = await metricsPage(gateway));
  assert.equal(await generationOf2(), 1);
  assert.equal(reloads(), 0, "a reload is not counted while a worker may still use the old configuration");
  process.kill(pid, "SIGCONT");
  await gateway.line("configuration reloaded");
  assert.equal(await generationOf2(), 2);
  await untilAllServe(gateway);
  assert.equal(workerPids(gateway).get(2), pid, "the worker answered in time and was not replaced");

  process.kill(pid, "SIGSTOP");
  const ends = streams.map(({ reader }) => reader.end());
  await gateway.line("a worker does not answer; it is killed and replaced");
  await gateway.line("what the last process left is settled");
  await untilAllServe(gateway);
  assert.notEqual(workerPids(gateway).get(2), pid);
  assert.equal(metricSum(await metricsPage(gateway), "tollgate_worker_ends_total", 'cause="stuck"'), 1);
  for (const stream of streams) finish(stream);
  const read = await Promise.all(ends);
  const cut = read.filter((one) => one.cut).length;
  assert.ok(cut >= 1 && cut < STREAMS, `${cut} of ${STREAMS} streams were of this worker`);
  assert.equal(read.filter((one) => !one.cut && one.text.endsWith(CHAT_END)).length, STREAMS - cut);
  for (let i = 0; i < LATER; i++) {
    const reply = await ask(gateway, "chat", scene.account.key, {}, { headers: { connection: "close" } });
    assert.equal(reply.status, 200, await reply.text());
  }
  assert.equal(await gateway.stop("SIGTERM"), 0, gateway.output());

  const { ledger, holds, account } = await scene.state();
  assert.deepEqual([holds, account.held], [[], 0n]);
  const usage = ledger.filter(({ kind }) => kind === "usage");
  const orphans = usage.filter(({ memo }) => (JSON.parse(memo) as { ended?: string }).ended === "orphaned");
  assert.deepEqual([usage.length, orphans.length], [STREAMS + LATER, cut], "each is charged once");
  // Every stream began at the first price, including those that broke off; the doubled one is for five tokens of
  // output.
  const exact = usage.filter((line) => !orphans.includes(line)).map(({ amount }) => amount);
  assert.deepEqual(exact, [
    ...Array(STREAMS - cut).fill(CHARGE_NANO_USD),
    ...Array(LATER).fill(CHARGE_NANO_USD + 50_000n),
  ]);
});
