/**
 * What goes wrong when a user starts a gateway, tried as users would: the error is one sentence that names the setting
 * and what to write there (docs/failure-model.md rows B3 and F4).
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import test, { type TestContext } from "node:test";
import { startGateway } from "../../../../src/gateway.ts";
import { createLog } from "../../../../src/telemetry/log.ts";
import { BARE_ENV, PROGRAM, settingsOf, spawnGateway } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { untilStatus } from "../workers/rig.ts";

/** A start that hangs is a failure as well. */
const START_MS = 60_000;

interface Wanted {
  readonly listen?: string;
  readonly admin?: string;
  readonly store?: string;
  readonly journal?: string;
}

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-starting-"));
  t.after(() => {
    chmodSync(dir, 0o700);
    rmSync(dir, { recursive: true, force: true });
  });
  return dir;
}

function configured(dir: string, wanted: Wanted): string {
  const file = join(dir, "tollgate.yaml");
  writeFileSync(file, configuration(dir, wanted));
  return file;
}

function configuration(dir: string, { listen = "127.0.0.1:0", admin = "127.0.0.1:0", store, journal }: Wanted): string {
  return `listen: ${listen}
admin: ${admin}
store: ${store ?? `embedded:${dir}/data`}
journal: {dir: ${journal ?? `${dir}/data/journal`}}
sealing_keys: [${"k".repeat(40)}]
default_plan: free
upstreams: {east: {protocol: chat, base_url: "http://127.0.0.1:9/v1", api_key: unused}}
plans: {free: {}}
models:
  m: {plans: [free], price: {input: "1", output: "1"}, context_tokens: 1000, max_output_tokens: 100, routes: [{upstream: east}]}
groups: {g: {kind: pay_per_use, models: [m]}}
`;
}

/** Starts a gateway that cannot start. @returns its standard error. */
async function refusalOf(
  args: readonly string[],
  options: { cwd?: string; env?: Record<string, string>; unprivileged?: boolean } = {},
): Promise<string> {
  const node = [process.execPath, PROGRAM, "serve", ...args];
  // In a separate user namespace a process has no rights over the machine, whoever runs the tests.
  const [command = "", ...rest] = options.unprivileged ? ["unshare", "--user", ...node] : node;
  const child = spawn(command, rest, {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: START_MS,
    ...(options.cwd && { cwd: options.cwd }),
    env: { ...BARE_ENV, ...options.env },
  });
  const [said] = await Promise.all([text(child.stderr), text(child.stdout), once(child, "exit")]);
  assert.equal(child.exitCode, 1, `${said} (signal ${child.signalCode})`);
  assert.doesNotMatch(said, /\n +at /, "no stack trace is printed");
  assert.equal(said.trimEnd().split("\n").length, 1, said);
  return said;
}

/** A port that is in use for as long as the test runs. */
async function takenPort(t: TestContext): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

for (const setting of ["listen", "admin"] as const) {
  test(`a port in use: ${setting} is named, and another port that is free`, async (t) => {
    const dir = folder(t);
    const port = await takenPort(t);
    const said = await refusalOf(["--config", configured(dir, { [setting]: `127.0.0.1:${port}` })]);
    const words = `^tollgate: port ${port} on 127\\.0\\.0\\.1 is in use by another program \\(setting ${setting}\\); `;
    const another = new RegExp(
      `${words}stop that program, or use another port, such as ${setting}: 127\\.0\\.0\\.1:(\\d+)\n$`,
    );
    const free = Number(another.exec(said)?.[1]);
    assert.ok(free > port, said);
  });
}

test("a port in use, without a configuration: the environment variable is named, in a command with those given", async (t) => {
  const port = await takenPort(t);
  const env = { TOLLGATE_LISTEN: `127.0.0.1:${port}`, TOLLGATE_ADMIN: "127.0.0.1:0" };
  const said = await refusalOf([], { cwd: folder(t), env });
  const command = `TOLLGATE_LISTEN=127\\.0\\.0\\.1:\\d+ TOLLGATE_ADMIN=127\\.0\\.0\\.1:0 (npx --no-install )?tollgate serve`;
  assert.match(said, new RegExp(`^tollgate: port ${port} .*take another address: ${command}\n$`));
});

test("a port that this user may not use: the setting is named, and a port that is allowed", async (t) => {
  const said = await refusalOf(["--config", configured(folder(t), { listen: "127.0.0.1:80" })], { unprivileged: true });
  assert.match(
    said,
    /^tollgate: this user may not listen on port 80 \(setting listen\); use a port from 1024 .*such as listen: 127\.0\.0\.1:80\d\d\n$/,
  );
});

test("an address that this machine does not have is reported", async (t) => {
  const said = await refusalOf(["--config", configured(folder(t), { listen: "192.0.2.7:8787" })]);
  assert.match(
    said,
    /^tollgate: this machine has no address 192\.0\.2\.7 \(setting listen\); .*such as listen: 127\.0\.0\.1:8787\n$/,
  );
});

test("a socket whose folder does not exist is reported", async (t) => {
  const dir = folder(t);
  const said = await refusalOf(["--config", configured(dir, { listen: `unix:${dir}/run/tollgate.sock` })]);
  assert.ok(
    said.startsWith(`tollgate: the folder ${dir}/run for the socket does not exist (setting listen); create it`),
    said,
  );
});

test("a second gateway on a data folder: the error names the folder, the process, and what to do", async (t) => {
  const dir = folder(t);
  const first = await spawnGateway(configuration(dir, {}));
  t.after(() => first.stop());
  const data = join(dir, "data");
  const said = await refusalOf(["--config", configured(folder(t), { store: `embedded:${data}` })]);
  assert.ok(said.startsWith(`tollgate: another process (${first.child.pid}) has the folder ${data}; `), said);
  assert.match(said, /setting store/);
});

test("a data folder that cannot be written or created: the error names it, the reason, and the setting", async (t) => {
  const dir = folder(t);
  const locked = join(dir, "locked");
  mkdirSync(locked, { mode: 0o500 });
  const config = configured(dir, { store: `embedded:${locked}/data` });
  const said = await refusalOf(["--config", config], { unprivileged: true });
  assert.equal(
    said,
    `tollgate: the folder ${locked}/data cannot be used: this user may not write there (EACCES); ` +
      "name another folder with the setting store (embedded:DIR), or give this user write access\n",
  );
  const journal = await refusalOf(["--config", configured(dir, { journal: "/proc/nope/journal" })]);
  assert.match(
    journal,
    /^tollgate: the folder \/proc\/nope\/journal cannot be used: a parent of the folder does not exist and cannot be made .*setting journal\.dir\n$/,
  );
  assert.match(
    await refusalOf(["--config", configured(dir, { store: "embedded:/proc/nope" })]),
    /the folder \/proc\/nope cannot be used/,
  );
});

test("a folder that cannot be written, without a configuration: the advice is to start in another folder", async (t) => {
  const dir = folder(t);
  chmodSync(dir, 0o500);
  const env = { TOLLGATE_LISTEN: "127.0.0.1:0", TOLLGATE_ADMIN: "127.0.0.1:0" };
  const said = await refusalOf([], { cwd: dir, env, unprivileged: true });
  assert.match(said, /EACCES.*\. Without a tollgate\.yaml the data goes below this folder: start it elsewhere\n$/);
});

test("a start over Redis that fails when store and journal are open says why, and the process ends", async (t) => {
  const dir = folder(t);
  const redis = await startRedis();
  t.after(() => redis.stop());
  mkdirSync(join(dir, "data"));
  const token = join(dir, "data/admin-token");
  writeFileSync(token, "");
  const said = await refusalOf(["--config", configured(dir, { store: `${redis.url}/0` })]);
  assert.equal(said, `tollgate: ${token} is empty; remove it, and a new one is generated\n`);
});

test("a start that fails late closes what it has opened: a next start in the same process gets folder and journal", async (t) => {
  const dir = folder(t);
  mkdirSync(join(dir, "data"));
  const token = join(dir, "data/admin-token");
  writeFileSync(token, "");
  const settings = settingsOf(configuration(dir, {}));
  const log = createLog({ level: "error" });
  await assert.rejects(startGateway({ settings, log }), /admin-token is empty/);
  rmSync(token);
  const gateway = await startGateway({ settings, log });
  await gateway.close();
});

test("a missing file is named, and the option that selects another one", async (t) => {
  const said = await refusalOf(["--config", "no-such.yaml"], { cwd: folder(t) });
  assert.equal(said, "tollgate: no-such.yaml cannot be read (ENOENT); name another with --config\n");
});

test("Redis unreachable at the start: one line says so, one says that it is back, and none in between", async (t) => {
  const dir = folder(t);
  const redis = await startRedis();
  t.after(() => redis.stop());
  await redis.kill();
  const warnings: Record<string, unknown>[] = [];
  const gateway = await spawnGateway(configuration(dir, { store: `${redis.url}/0` }), [], {
    onLine(line) {
      const read = JSON.parse(line) as Record<string, unknown>;
      if (read.level !== "info") warnings.push(read);
    },
  });
  t.after(() => gateway.stop());
  await gateway.line('"event":"store_away"');
  // The store is checked every second, and Redis three times: the gateway is not ready after five of these.
  await untilStatus(`${gateway.adminUrl}/readyz`, 503);
  await redis.restart();
  await gateway.line('"event":"store_back"');
  const [first, ...others] = warnings;
  assert.equal(first?.reason, `connect ECONNREFUSED 127.0.0.1:${redis.port}`);
  assert.match(String(first?.msg), /^the store does not answer; it is checked every second, and new requests get 503/);
  const told = others.map(({ msg }) => String(msg)).filter((msg) => !msg.includes("append-only file"));
  assert.deepEqual(told, []);
});
