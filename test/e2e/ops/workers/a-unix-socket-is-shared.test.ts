/**
 * Several processes on one unix socket: its file is created once, survives the end of a worker, and is removed with the
 * gateway.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import process from "node:process";
import test from "node:test";
import { bodyOf } from "../../protocol/whole/asking.ts";
import { gone, lines, untilAllServe, workerPids, workersScene } from "./rig.ts";

test("two workers share a unix socket, and it survives the kill of one", async (t) => {
  const scene = await workersScene(t);
  const socketPath = join(scene.dir, "tollgate.sock");
  const gateway = await scene.start(2, { listen: `unix:${socketPath}`, admin_token: undefined });
  const askOnce = async () => {
    const sent = request({
      socketPath,
      method: "POST",
      path: "/v1/chat/completions",
      headers: { authorization: `Bearer ${scene.account.key}`, "content-type": "application/json" },
      agent: false,
    }).end(JSON.stringify(bodyOf("chat")));
    const [reply] = (await once(sent, "response")) as [IncomingMessage];
    reply.resume();
    await once(reply, "end");
    return reply.statusCode;
  };
  assert.equal(statSync(socketPath).mode & 0o777, 0o660);
  for (let i = 0; i < 6; i++) assert.equal(await askOnce(), 200);
  const workers = lines(gateway).filter(({ msg }) => msg === "request");
  assert.equal(new Set(workers.map(({ worker }) => worker)).size, 2);
  const pids = workerPids(gateway);
  process.kill(pids.get(1) as number, "SIGKILL");
  await gateway.line('"msg":"a worker has ended"');
  await untilAllServe(gateway);
  assert.notEqual(workerPids(gateway).get(1), pids.get(1));
  for (let i = 0; i < 4; i++) assert.equal(await askOnce(), 200);
  assert.equal(await gateway.stop("SIGINT"), 0, gateway.output());
  await gone(workerPids(gateway).values());
  assert.ok(!existsSync(socketPath));
  assert.ok(existsSync(join(scene.dir, "admin-token")), "the parent creates the token once");
  assert.doesNotMatch(gateway.output(), /no file of the journal/);
  assert.ok(!existsSync(join(scene.dir, "journal", "admin-token")));
});
