import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { exchange } from "../../rig/raw-socket.ts";
import { CHAT_BODY, request, startEcho } from "./echo.ts";

const BASE = ["Content-Type: application/json", `Content-Length: ${CHAT_BODY.length}`];

test("a unix socket has mode 0660, and replaces a stale file but not a socket in use", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "accept-"));
  t.after(() => rm(dir, { recursive: true }));
  const path = join(dir, "a.sock");
  const address = { kind: "unix", path } as const;
  const echo = await startEcho(t, { address, trustProxy: ["unix"] });
  assert.equal((await stat(path)).mode & 0o777, 0o660);
  await exchange(echo.target, request({ headers: [...BASE, "X-Forwarded-For: 9.9.9.9"] }));
  assert.equal(echo.requests[0]?.clientAddress, "9.9.9.9");
  await assert.rejects(startEcho(t, { address }), { code: "EADDRINUSE" });
  assert.equal((await exchange(echo.target, request({})))[0]?.status, 200);
  const file = join(dir, "no-socket");
  await writeFile(file, "");
  await assert.rejects(startEcho(t, { address: { kind: "unix", path: file } }), { code: "EADDRINUSE" });
});

test("listening on a port in use fails", async (t) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  t.after(() => taken.close());
  const { port } = taken.address() as { port: number };
  await assert.rejects(startEcho(t, { address: { kind: "tcp", host: "127.0.0.1", port } }), { code: "EADDRINUSE" });
});

test("more connections may be opened in one turn of the event loop than Node's default backlog of 511 holds", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "accept-"));
  t.after(() => rm(dir, { recursive: true }));
  const path = join(dir, "a.sock");
  await startEcho(t, { address: { kind: "unix", path } });
  // Nothing is accepted until all have been requested. A system with a lower `net.core.somaxconn` refuses those above
  // it.
  const sockets = Array.from({ length: 600 }, () => connect({ path }));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  for (const socket of sockets) socket.destroy();
});
