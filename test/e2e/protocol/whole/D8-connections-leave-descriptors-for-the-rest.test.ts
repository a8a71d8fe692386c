/**
 * docs/failure-model.md row D8: with `ulimit -n 256` a flood of connections is answered that there is no room, and
 * requests are still answered.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { sharesOf } from "../../../../src/accept/descriptors.ts";
import { startSimulator } from "../../../../src/simulator/server.ts";
import { spawnGateway, testConfig } from "../../../rig/gateway.ts";
import { RawSocket } from "../../../rig/raw-socket.ts";
import { adminGet, keyOf } from "../../ops/fronts/admin.ts";
import { bodyOf } from "./asking.ts";

const OPEN_FILES_MAX = 256;
const CONNECTIONS = 400;

test("400 connections on 256 descriptors are refused or served, and requests are still answered", async () => {
  const { connectionsMax, overflowMax } = sharesOf(OPEN_FILES_MAX);
  const dir = mkdtempSync(join(tmpdir(), "tollgate-descriptors-"));
  const simulator = await startSimulator();
  const gateway = await spawnGateway(testConfig({ upstreamUrl: simulator.url, dir }), [], {
    openFilesMax: OPEN_FILES_MAX,
  });
  const target = { port: Number(new URL(gateway.url).port) };
  const sockets: RawSocket[] = [];
  try {
    const key = await keyOf(gateway, "crowded");
    const body = JSON.stringify(bodyOf("chat"));
    const request = [
      "POST /v1/chat/completions HTTP/1.1",
      "Host: tollgate",
      "Content-Type: application/json",
      `Authorization: Bearer ${key}`,
      `Content-Length: ${body.length}`,
      "",
      body,
    ].join("\r\n");
    // The first connection was opened before the flood and sends a request at its peak.
    const early = new RawSocket(target).send(request);
    assert.equal((await early.responses(1))[0]?.status, 200);
    sockets.push(early);
    for (let i = 1; i < connectionsMax; i++) sockets.push(new RawSocket(target));
    const beyond = Array.from({ length: CONNECTIONS - connectionsMax }, () => new RawSocket(target));
    sockets.push(...beyond);
    const answers = await Promise.all(beyond.map((socket) => socket.responsesUntilClosed()));
    const told = answers.flat();
    assert.ok(told.length >= overflowMax, `${told.length} were answered`);
    for (const { status, headers } of told) assert.deepEqual([status, headers.connection], [503, "close"]);
    early.send(request);
    assert.equal((await early.responses(2))[1]?.status, 200);
    const { held_usd } = (await adminGet(gateway, "/accounts/crowded")) as { held_usd: string };
    assert.equal(Number(held_usd), 0);
    for (const socket of sockets) socket.close();
    await Promise.all(sockets.map(({ closed }) => closed));
    assert.doesNotMatch(gateway.output(), /EMFILE|defect/);
    assert.equal(await gateway.stop("SIGINT"), 0);
  } finally {
    for (const socket of sockets) socket.close();
    await gateway.stop("SIGKILL");
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
