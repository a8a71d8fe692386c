/**
 * The file of `admin: unix:PATH`: one left by a killed process does not prevent a start, one in use does, and its mode
 * decides who may connect.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import { startGateway } from "../../../../src/gateway.ts";
import { createLog } from "../../../../src/telemetry/log.ts";
import { settingsOf, testConfig } from "../../../rig/gateway.ts";

/** A folder in which gateways have their data; `closing` is called before it is removed. */
function folder(t: TestContext): { dir: string; path: string; closing: (() => Promise<void>)[] } {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-socket-"));
  const closing: (() => Promise<void>)[] = [];
  t.after(async () => {
    for (const close of closing) await close();
    rmSync(dir, { recursive: true, force: true });
  });
  return { dir, path: join(dir, "admin.sock"), closing };
}

/** A gateway with its admin API on the socket. */
async function startAt(path: string, { dir, closing }: ReturnType<typeof folder>, name: string): Promise<void> {
  const settings = settingsOf(testConfig({ upstreamUrl: "http://127.0.0.1:9/v1", dir: join(dir, name) }));
  const gateway = await startGateway({
    settings: { ...settings, admin: { kind: "unix", path } },
    log: createLog({ level: "error" }),
  });
  closing.push(() => gateway.close());
}

/** Leaves a socket's file on which nothing listens, as a killed process does. */
async function leaveSocket(path: string): Promise<void> {
  const server = createServer().listen(`${path}.first`);
  await once(server, "listening");
  // Node removes the file under the name with which it was created.
  renameSync(`${path}.first`, path);
  server.close();
  await once(server, "close");
}

async function isAlive(socketPath: string): Promise<boolean> {
  const asked = request({ socketPath, path: "/healthz", headers: { host: "localhost" }, agent: false }).end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "end");
  return answer.statusCode === 200;
}

test("a file that a killed process left is replaced, with access for the user and the group only", async (t) => {
  const place = folder(t);
  await leaveSocket(place.path);
  await startAt(place.path, place, "one");
  assert.equal(statSync(place.path).mode & 0o777, 0o660);
  assert.ok(await isAlive(place.path));
});

test("a socket on which another process answers is not taken over", async (t) => {
  const place = folder(t);
  await startAt(place.path, place, "one");
  await assert.rejects(startAt(place.path, place, "two"), /another program listens on the socket/);
  assert.ok(await isAlive(place.path));
});
