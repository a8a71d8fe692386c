/**
 * A connection handed over to a worker that is stopped, and then killed, is answered by another one. node:cluster would
 * keep it open in the parent, where nothing reads it.
 */
import assert from "node:assert/strict";
import process from "node:process";
import test from "node:test";
import { ask } from "../../protocol/whole/asking.ts";
import { untilAllServe, workerPids, workersScene } from "./rig.ts";

const REQUESTS = 4;

test("a connection of a worker that is stopped and killed is answered by the other one", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(2);
  const stopped = workerPids(gateway).get(1) as number;
  process.kill(stopped, "SIGSTOP");
  const answered: number[] = [];
  const { promise: others, resolve } = Promise.withResolvers<void>();
  const requests = Array.from({ length: REQUESTS }, async (_, index) => {
    const reply = await ask(gateway, "chat", scene.account.key, {}, { headers: { connection: "close" } });
    await reply.text();
    if (answered.push(index) === REQUESTS - 1) resolve();
    return reply.status;
  });
  await others;
  // In turn: one of them went to the worker that is stopped.
  assert.equal(answered.length, REQUESTS - 1);
  process.kill(stopped, "SIGKILL");
  assert.deepEqual(await Promise.all(requests), Array(REQUESTS).fill(200));
  await untilAllServe(gateway);
  assert.equal(await gateway.stop("SIGTERM"), 0, gateway.output());
  const { ledger } = await scene.state();
  assert.equal(ledger.filter(({ kind }) => kind === "usage").length, REQUESTS);
});

test("if no other worker serves, the connection is closed at once", async (t) => {
  const scene = await workersScene(t);
  const gateway = await scene.start(2);
  const [first, second] = [...workerPids(gateway).values()] as [number, number];
  process.kill(first, "SIGSTOP");
  process.kill(second, "SIGSTOP");
  const asked = assert.rejects(ask(gateway, "chat", scene.account.key, {}, { headers: { connection: "close" } }));
  // When the parent answers this, it has handed the connection over; nothing else shows it.
  await fetch(`${gateway.adminUrl}/healthz`);
  process.kill(first, "SIGKILL");
  process.kill(second, "SIGKILL");
  await asked;
  await untilAllServe(gateway);
  assert.equal(await gateway.stop("SIGTERM"), 0, gateway.output());
});
