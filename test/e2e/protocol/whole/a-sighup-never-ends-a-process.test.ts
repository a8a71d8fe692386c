/** SIGHUP reloads, and does nothing else: not to a gateway that still starts, and not in the last moment of one that ends. */
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

test("while it ends", { timeout: 120_000 }, async (t) => {
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

test("while it starts; it is heeded as soon as it can be", { timeout: 60_000 }, async (t) => {
  const silent = createServer();
  const sockets: Socket[] = [];
  silent.on("connection", (socket) => sockets.push(socket));
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const text = testConfig({ upstreamUrl: NOBODY, dir: folder(t), store: `redis://127.0.0.1:${port}/0` });
  // It waits for this store when the connection comes, and starts when it has waited for long enough.
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
