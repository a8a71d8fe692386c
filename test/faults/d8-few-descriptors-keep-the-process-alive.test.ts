/** Row D8, invariant 26: more connections than descriptors. The process lives, serves whom it has, and recovers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { startSimulator } from "../../src/simulator/server.ts";
import { admin, ask, chat, moneyConfig, openAccount } from "../money/house.ts";
import { spawnGateway } from "../rig/gateway.ts";

const DESCRIPTORS = 256;
const CONNECTIONS = 400;

test("400 connections to a process that may have 256 descriptors", { timeout: 120_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-descriptors-"));
  const simulator = await startSimulator();
  const gateway = await spawnGateway(moneyConfig({ upstreamUrl: simulator.url, dir }), [], {
    descriptors: DESCRIPTORS,
  });
  const crowd: Socket[] = [];
  try {
    const account = await openAccount(gateway, { funds: 10_000_000_000n });
    // Somebody who is there already, with a connection of his own and one to the upstream.
    assert.equal((await ask(gateway, account.key, chat())).status, 200);
    const { hostname, port } = new URL(gateway.url);
    let closed = 0;
    const full = Promise.withResolvers<void>();
    for (let i = 0; i < CONNECTIONS; i++) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on("error", () => undefined);
      socket.on("close", () => {
        closed += 1;
        if (closed >= CONNECTIONS - DESCRIPTORS) full.resolve();
      });
      crowd.push(socket);
      // The kernel completes the handshake whether or not the process has a descriptor for it.
      await once(socket, "connect");
    }
    // Whom it has no descriptor for is let go, and the others are still served.
    await full.promise;
    assert.equal(gateway.child.exitCode, null);
    const meanwhile = await ask(gateway, account.key, chat());
    assert.ok(meanwhile.status === 200 || meanwhile.cause === "overloaded", meanwhile.text);
    // Those who leave make room.
    for (const socket of crowd.splice(0)) socket.destroy();
    const answer = await ask(gateway, account.key, chat());
    assert.equal(answer.status, 200, answer.text);
    const shown = await admin<{ held_usd: string }>(gateway, "GET", `/accounts/${account.name}`);
    assert.match(shown.held_usd, /^0(\.0+)?$/);
  } finally {
    for (const socket of crowd) socket.destroy();
    assert.equal(await gateway.stop(), 0);
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
