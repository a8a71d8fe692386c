/** SIGHUP reloads and never ends the process, not even while a gateway starts or in the last moment of its shutdown. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import test, { type TestContext } from "node:test";
import { spawnGateway, testConfig } from "../../../rig/gateway.ts";

const ENDS = 5;
const NOBODY = "http://127.0.0.1:1";

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-hup-"));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

test("SIGHUP does not end a process that is shutting down", async (t) => {
  const text = testConfig({ upstreamUrl: NOBODY, dir: folder(t) });
  for (let i = 0; i < ENDS; i++) {
    const gateway = await spawnGateway(`${text}drain: {lame_duck: 50ms, deadline: 1s}\n`);
    let isThere = true;
    const ended = gateway.stop("SIGTERM").finally(() => {
      isThere = false;
    });
    while (isThere) {
      gateway.child.kill("SIGHUP");
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual([await ended, gateway.child.signalCode], [0, null], gateway.output());
  }
});

test("SIGHUP during the start does not end the process, and reloads as soon as possible", async (t) => {
  const silent = createServer();
  const sockets: Socket[] = [];
  silent.on("connection", (socket) => sockets.push(socket));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const text = testConfig({ upstreamUrl: NOBODY, dir: folder(t), store: `redis://127.0.0.1:${port}/0` });
  // The gateway connects to this store, which never answers, and starts after the time limit.
  const connected = once(silent, "connection");
  const starting = spawnGateway(text, [], { onSpawn: (child) => void connected.then(() => child.kill("SIGHUP")) });
  const gateway = await starting;
  t.after(async () => {
    await gateway.stop("SIGKILL");
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  await gateway.line("configuration reloaded");
  process.kill(gateway.child.pid as number, "SIGINT");
  assert.equal(await gateway.stop("SIGCONT"), 0, gateway.output());
});
