/**
 * `--admin unix:PATH`: commands use a gateway at a socket like one at an address, and report its absence as clearly.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { unreachable } from "../../../src/cli/admin-client.ts";
import { test } from "../../rig/together.ts";
import { ADMIN_TOKEN, startConsole } from "../console/running-console.ts";
import { run } from "./captured-run.ts";

async function socketPath(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "tollgate-cli-"));
  t.after(() => rm(dir, { recursive: true }));
  return join(dir, "admin.sock");
}

test("commands read, write and follow over the socket, by option and by environment", async (t) => {
  const path = await socketPath(t);
  const { store } = await startConsole(t, {}, { kind: "unix", path });
  const env = { TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  const byOption = await run(["account", "create", "alice", "--admin", `unix:${path}`], { env });
  assert.equal(byOption.err, "");
  assert.equal(byOption.status, 0);
  const inEnv = { ...env, TOLLGATE_ADMIN_URL: `unix:${path}` };
  assert.equal((await run(["topup", "--account", "alice", "--usd", "1", "--id", "first"], { env: inEnv })).status, 0);
  assert.equal((await store.findAccount("alice"))?.balance, 1_000_000_000n);
  const lines = await run(["ledger", "show", "--account", "alice", "--limit", "1", "--json"], { env: inEnv });
  assert.equal(JSON.parse(lines.out).items.length, 1, "the query is sent too");
  assert.deepEqual(await run(["health"], { env: inEnv }), { status: 0, out: "alive\n", err: "" });
  let stop = () => {};
  const followed = await run(["ledger", "show", "--account", "alice", "--follow"], {
    env: inEnv,
    onStop: (end) => {
      stop = end;
      return () => {};
    },
    wait: async () => stop(),
  });
  assert.equal(followed.status, 0);
  assert.match(followed.out, /topup/);
});

test("the gateway's refusal is shown, and a wrong token is reported", async (t) => {
  const path = await socketPath(t);
  await startConsole(t, {}, { kind: "unix", path });
  const env = { TOLLGATE_ADMIN_URL: `unix:${path}`, TOLLGATE_ADMIN_TOKEN: ADMIN_TOKEN };
  assert.match((await run(["account", "show", "nobody"], { env })).err, /^Refused: .*no account named `nobody`/);
  const wrong = await run(["account", "list"], { env: { ...env, TOLLGATE_ADMIN_TOKEN: "another" } });
  assert.match(wrong.err, /not the admin token[\s\S]*came from the environment variable/);
});

test("if no process listens at the socket, the message names it and says how to start a gateway", async (t) => {
  const path = await socketPath(t);
  const ask = () => run(["account", "list", "--admin", `unix:${path}`]);
  const absent = await ask();
  assert.equal(absent.status, 1);
  assert.ok(absent.err.startsWith(`No gateway answers at unix:${path} (ENOENT).\nStart it with: `), absent.err);
  await writeFile(path, "");
  assert.ok((await ask()).err.startsWith(`No gateway answers at unix:${path} (ECONNREFUSED).\n`));
  assert.match((await run(["health", "--admin", `unix:${path}`])).err, /^No gateway answers at unix:/);
});

test("a socket without permission for the user is reported with the settings that would grant it", () => {
  const { message } = unreachable("unix:/run/admin.sock", { code: "EACCES", syscall: "connect" }, true);
  assert.match(
    message,
    /^You have no permission to use the socket unix:\/run\/admin\.sock \(EACCES\)\.\n.*user and group/,
  );
});

test("an answer that is cut off is incomplete, and the outcome of a write is unknown", async (t) => {
  const path = await socketPath(t);
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-length": 100 }).write("{");
    response.socket?.destroySoon();
  });
  await once(server.listen(path), "listening");
  t.after(() => server.close());
  const ran = await run(["account", "create", "alice", "--admin", `unix:${path}`]);
  assert.equal(ran.status, 1);
  assert.match(ran.err, /gave no complete answer \(ECONNRESET\)\.\nIt is unknown whether the change was made/);
});

test("a value that is no path of a socket is refused before any request", async () => {
  for (const wrong of ["unix:", `unix:/${"a".repeat(107)}`]) {
    const ran = await run(["account", "list", "--admin", wrong]);
    assert.equal(ran.status, 2);
    assert.match(ran.err, /^--admin must be unix: and the path of a socket of at most 107 bytes, such as unix:/);
  }
});
