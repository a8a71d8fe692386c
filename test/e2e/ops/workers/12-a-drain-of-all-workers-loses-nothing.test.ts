/** ARCHITECTURE.md promise 12 with several processes: SIGTERM to the parent alone, under streams of every worker. */
import assert from "node:assert/strict";
import test from "node:test";
import { ask } from "../../protocol/whole/asking.ts";
import { CHAT_END } from "../fronts/fronts.ts";
import { CHARGE_NANO_USD, finish, gone, openStreams, untilStatus, workerPids, workersScene } from "./rig.ts";

const STREAMS = 12;

test("late requests are served, streams finish, the charges are exact, and every process ends", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(4);
  const pids = [...workerPids(gateway).values()];
  const streams = await openStreams(scene, gateway.url, STREAMS);
  gateway.child.kill("SIGTERM");
  const { reasons } = await untilStatus(`${gateway.adminUrl}/readyz`, 503);
  assert.ok(reasons.includes("draining"), String(reasons));
  const late = await ask(gateway, "chat", scene.account.key);
  assert.deepEqual([late.status, late.headers.get("connection")], [200, "close"], await late.text());
  assert.equal((await fetch(`${gateway.adminUrl}/healthz`)).status, 200);
  for (const stream of streams) finish(stream);
  for (const { reader } of streams) {
    const { text, cut } = await reader.end();
    assert.ok(!cut && text.endsWith(CHAT_END), "a stream was cut");
  }
  assert.equal(await gateway.stop("SIGCONT"), 0, gateway.output());
  await gone(pids);
  const { ledger, holds, inFlight } = await scene.state();
  assert.deepEqual([holds, inFlight], [[], 0]);
  const usage = ledger.filter(({ kind }) => kind === "usage").map(({ amount }) => amount);
  assert.deepEqual(usage, Array(STREAMS + 1).fill(CHARGE_NANO_USD));
});
