/** SIGTERM to one worker: its streams finish, another worker replaces it, and the gateway continues. */
import assert from "node:assert/strict";
import process from "node:process";
import test from "node:test";
import { ask } from "../../protocol/whole/asking.ts";
import { CHAT_END } from "../fronts/fronts.ts";
import {
  CHARGE_NANO_USD,
  finish,
  openStreams,
  untilAllServe,
  untilReadiness,
  workerPids,
  workersScene,
} from "./rig.ts";

const STREAMS = 6;

test("one of two workers that gets SIGTERM drains and is replaced", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(2);
  const pids = workerPids(gateway);
  const streams = await openStreams(scene, gateway.url, STREAMS);
  process.kill(pids.get(1) as number, "SIGTERM");
  const standing = await untilReadiness(`${gateway.adminUrl}/readyz`, ({ notes }) => notes.length > 0);
  assert.deepEqual(standing, { ready: true, reasons: [], notes: ["worker 1 is draining"] }, "the other worker serves");
  for (const stream of streams) finish(stream);
  for (const { reader } of streams) {
    const { text, cut } = await reader.end();
    assert.ok(!cut && text.endsWith(CHAT_END), "a stream was cut");
  }
  await gateway.line('"msg":"a worker has ended"');
  await untilAllServe(gateway);
  assert.notEqual(workerPids(gateway).get(1), pids.get(1));
  for (let i = 0; i < 4; i++) {
    const reply = await ask(gateway, "chat", scene.account.key);
    assert.equal(reply.status, 200, await reply.text());
  }
  assert.equal(await gateway.stop("SIGTERM"), 0, gateway.output());
  const { ledger, holds } = await scene.state();
  assert.deepEqual(holds, []);
  const usage = ledger.filter(({ kind }) => kind === "usage").map(({ amount }) => amount);
  assert.deepEqual(usage, Array(STREAMS + 4).fill(CHARGE_NANO_USD));
});
