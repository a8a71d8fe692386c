/**
 * The output of `npm run build` as its users have it: one file in an empty folder, without a checkout and without Node;
 * and a package that npm has installed. Each test runs the programs themselves.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test, { after, before } from "node:test";
import { THREAD_CHARS_MIN } from "../../../../src/config/watch.ts";
import { type Changes, testConfig } from "../../../rig/config.ts";
import { type GatewayProcess, spawnGateway } from "../../../rig/gateway.ts";
import { startRedis } from "../../../rig/redis.ts";
import { hasThread } from "../../../rig/threads.ts";
import { ask, PROTOCOL_LIST } from "../../protocol/whole/asking.ts";
import { adminGet, keyOf } from "../fronts/admin.ts";
import { CHAT_END, chatFrame, chatStream, startHandUpstream } from "../fronts/fronts.ts";
import { build, type Ran, run, scratch, startSpanSink, WITH_NODE, WITHOUT_NODE } from "./built.ts";

const { dir, remove } = scratch();
const ONE = join(dir, "one", "tollgate");
const TWO = join(dir, "two", "tollgate");
const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
const PACKAGE = join(dir, "one", `tollgate-${version}.tgz`);

before(() => {
  build(join(dir, "one"), "one");
  build(join(dir, "two"), "two", "executable");
});
after(remove);

/** Runs the executable in an otherwise empty environment. */
const tollgate = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ran> =>
  run([ONE, ...args], { ...WITHOUT_NODE, ...env });

/** Runs `tollgate simulator` of the executable until the test ends. @returns its base URL. */
async function simulator(t: { after(undo: () => Promise<void>): void }): Promise<string> {
  const child = spawn(ONE, ["simulator"], { cwd: dir, env: WITHOUT_NODE, stdio: ["ignore", "pipe", "inherit"] });
  t.after(async () => {
    const exited = once(child, "exit");
    child.kill("SIGTERM");
    await exited;
  });
  let said = "";
  for await (const piece of child.stdout) {
    said += String(piece);
    const url = /http:\S+\/v1(?=\n)/.exec(said)?.[0];
    if (url) return url;
  }
  throw new Error(said);
}

/** A gateway of this program in a new folder, killed at the end of the test at the latest. */
async function serve(
  t: { after(undo: () => Promise<unknown>): void },
  program: readonly string[],
  text: string,
  env: NodeJS.ProcessEnv = WITHOUT_NODE,
): Promise<GatewayProcess> {
  const gateway = await spawnGateway(text, [], { program, env: env as Record<string, string> });
  t.after(() => gateway.stop("SIGKILL"));
  return gateway;
}

const place = (name: string): string => {
  const made = join(dir, name);
  mkdirSync(made, { recursive: true });
  return made;
};

async function servesAll(gateway: Pick<GatewayProcess, "url">, key: string): Promise<void> {
  for (const protocol of PROTOCOL_LIST) {
    for (const stream of [false, true]) {
      const reply = await ask(gateway, protocol, key, { stream });
      const text = await reply.text();
      assert.equal(reply.status, 200, `${protocol} ${stream}: ${text}`);
      assert.match(text, stream ? /^(event|data): / : /^\{/, `${protocol} ${stream}`);
    }
  }
}

/** Reloads this text, made large enough for a thread. */
async function reloadsInThread(gateway: GatewayProcess, text: string): Promise<void> {
  writeFileSync(gateway.file, `${text}# ${"x".repeat(THREAD_CHARS_MIN)}\n`);
  const reloaded = gateway.line('"event":"config_reloaded"');
  gateway.child.kill("SIGHUP");
  assert.ok(await hasThread(gateway.child.pid as number, "configuration", reloaded));
  await reloaded;
}

/** The console's document, everything that it refers to, and whatever its modules import. */
async function servesPages({ url }: Pick<GatewayProcess, "url">): Promise<void> {
  const seen = new Set<string>();
  const load = async (address: string): Promise<void> => {
    if (seen.has(address)) return;
    seen.add(address);
    const response = await fetch(address);
    const text = await response.text();
    assert.equal(response.status, 200, address);
    const isDocument = response.headers.get("content-type")?.startsWith("text/html");
    const named = isDocument ? /(?:href|src)="([^"]+)"/g : /(?:\bfrom|\bimport)\s*"(\.{1,2}\/[^"\s]+)"/g;
    if (!isDocument && !/\.(?:ts|m?js)$/.test(address)) return;
    for (const [, name] of text.matchAll(named)) await load(new URL(name as string, address).href);
  };
  await load(`${url}/console/`);
  assert.ok(seen.size > 20, `${seen.size} files`);
}

test("the same sources and name give the same bytes", () => {
  build(join(dir, "again"), "one", "executable");
  assert.ok(readFileSync(ONE).equals(readFileSync(join(dir, "again", "tollgate"))));
  assert.ok(!readFileSync(ONE).equals(readFileSync(TWO)));
});

test("the executable prints its version and refuses wrong options in an otherwise empty environment", async () => {
  const said = await tollgate(["--version", "--json"]);
  const { node, ...facts } = JSON.parse(said.out) as Record<string, unknown>;
  assert.deepEqual(facts, { version, build: "one", running: null });
  assert.equal(`v${String(node)}`, process.version);
  assert.equal((await tollgate(["--version"])).out, `${version}\n`);
  assert.equal((await tollgate(["schema"])).out, readFileSync("tollgate.schema.json", "utf8"));
  assert.match((await tollgate(["--help"])).out, /^Usage: tollgate \[options\]/);
  const bad = join(place("bad"), "tollgate.yaml");
  writeFileSync(bad, "listen: 127.0.0.1:0\nmodles: {}\n");
  for (const command of ["check", "serve"]) {
    const refused = await tollgate([command, "--config", bad]);
    assert.equal(refused.status, 1);
    assert.match(refused.err, /modles/);
  }
  const away = await tollgate(["health"], { TOLLGATE_ADMIN_URL: "http://127.0.0.1:2" });
  assert.deepEqual([away.status, away.out], [1, ""]);
});

test("the executable serves three protocols, traces, reloads and drains, from a folder that it cannot write", async (t) => {
  const sink = await startSpanSink();
  t.after(async () => sink.stop());
  const upstreamUrl = await simulator(t);
  const traced: Changes = { traces: { endpoint: sink.url, sample: 1 } };
  const text = testConfig({ upstreamUrl, dir: place("alone") }, traced);
  const bin = place("read only");
  copyFileSync(ONE, join(bin, "tollgate"));
  chmodSync(bin, 0o555);
  const gateway = await serve(t, [join(bin, "tollgate")], text);
  const first = JSON.parse(gateway.output().split("\n")[0] as string) as Record<string, unknown>;
  assert.deepEqual([first.event, first.version, first.build, first.generation], ["starting", version, "one", 1]);
  const env = { TOLLGATE_ADMIN_URL: gateway.adminUrl, TOLLGATE_ADMIN_TOKEN: "test-admin-token" };
  assert.equal((await tollgate(["health"], env)).out, "alive\n");

  await tollgate(["account", "create", "alice"], env);
  await tollgate(["topup", "--account", "alice", "--usd", "10", "--id", "pay-1"], env);
  const made = await tollgate(["key", "create", "--account", "alice", "--group", "money", "--json"], env);
  const { key, id } = JSON.parse(made.out) as { key: string; id: string };
  await servesAll(gateway, key);
  await servesPages(gateway);
  assert.ok((await sink.first).includes("tollgate"));
  const words = ["explain", "--key-id", id, "--model", "chat-1", "--protocol", "chat"];
  assert.match((await tollgate(words, env)).out, /200/);
  assert.match((await tollgate(["ledger", "verify"], env)).out, /^Accounts verified: 1; out of balance: 0\.$/m);
  const { paths } = (await adminGet(gateway, "/openapi.json")) as { paths: object };
  assert.ok("/admin/v1/version" in paths);

  await reloadsInThread(gateway, text.replaceAll('output: "10"', 'output: "20"'));
  const { running } = JSON.parse((await tollgate(["--version", "--json"], env)).out) as { running: object };
  assert.deepEqual(running, { version, build: "one", node: process.versions.node, generation: 2 });
  const page = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const infos = page.split("\n").filter((line) => line.startsWith("tollgate_build_info"));
  assert.deepEqual(infos, [`tollgate_build_info{version="${version}",build="one",generation="2"} 1`]);

  const stream = await chatStream(gateway.url, key);
  const ended = gateway.stop("SIGTERM");
  const { text: all, cut } = await stream.end();
  assert.ok(!cut && all.endsWith("data: [DONE]\n\n"), all);
  assert.equal(await ended, 0);
});

test("the executable serves in the image's file system, as a user who may write one folder", async (t) => {
  const root = place("image");
  const made = await run(["sh", join(process.cwd(), "deploy/image-root.sh"), ONE, root], process.env);
  assert.equal(made.status, 0, made.err);
  const files = globSync("**", { cwd: root, withFileTypes: true }).filter((entry) => entry.isFile());
  const strangers = files.map(({ name }) => name).filter((name) => !/^(tollgate|passwd|group|lib.*|ld-.*)$/.test(name));
  assert.deepEqual(strangers, []);
  mkdirSync(join(root, "etc/tollgate"));
  const state = "/var/lib/tollgate";
  const text = testConfig({ upstreamUrl: "http://127.0.0.1:9/v1", dir: state });
  writeFileSync(join(root, "etc/tollgate/tollgate.yaml"), text);
  mkdirSync(join(root, "proc"));
  const inside = asContainer(root, ["/tollgate"]);
  const [program, ...args] = [...inside, "serve", "--config", "/etc/tollgate/tollgate.yaml"];
  const child = spawn(program as string, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env.PATH },
  });
  const exited = once(child, "exit");
  t.after(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  let serving: { admin: string } | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes('"event":"serving"')) serving = JSON.parse(line) as { admin: string };
    if (serving) break;
  }
  const env = { PATH: process.env.PATH, TOLLGATE_ADMIN_URL: serving?.admin };
  assert.deepEqual(await run([...inside, "health"], env), { status: 0, out: "alive\n", err: "" });
  child.kill("SIGTERM");
  assert.deepEqual(await exited, [0, null]);
  const wrote = globSync("**", { cwd: root, withFileTypes: true }).filter((entry) => entry.isFile()).length;
  const kept = globSync("var/lib/tollgate/**", { cwd: root, withFileTypes: true }).filter((entry) => entry.isFile());
  assert.equal(wrote, files.length + 1 + kept.length, "only the configuration and the files in the volume are added");
});

test("a truncated file reports it, and runs nothing", async () => {
  const file = join(place("cut"), "tollgate");
  copyFileSync(ONE, file);
  truncateSync(file, statSync(file).size - 1);
  const { status, out, err } = await run([file, "--version"], WITHOUT_NODE);
  assert.deepEqual([status, out], [1, ""]);
  assert.match(
    err,
    /^The executable is damaged at its end: it was cut, or something was appended\. Copy it again\.\n$/,
  );
});

test("a build is upgraded in place under a stream, while workers keep the build of their parent", async (t) => {
  const redis = await startRedis();
  t.after(async () => redis.stop());
  const upstream = await startHandUpstream();
  t.after(async () => upstream.close());
  const file = join(place("installed"), "tollgate");
  copyFileSync(ONE, file);
  const config = (name: string) =>
    testConfig(
      { upstreamUrl: upstream.url, dir: place(name), store: redis.url },
      { workers: 2, listen: `unix:${join(place(name), "t.sock")}`, drain: { lame_duck: "100ms" } },
    );
  const old = await serve(t, [file], config("old"));
  const key = await keyOf(old, "bob");
  const oldSocket = join(dir, "old", "t.sock");
  const reply = overSocket(oldSocket, key);
  const upstreamRequest = await upstream.next();
  upstreamRequest.send(chatFrame("first."));
  const stream = await reply;
  await stream.until("first.");

  copyFileSync(TWO, `${file}.new`);
  renameSync(`${file}.new`, file);
  // A worker that is started now must still run the old build, because it and its parent exchange messages.
  const workerServes = async (count: number): Promise<number> =>
    (JSON.parse(await old.line('"event":"worker_serves"', count)) as { pid: number }).pid;
  const pids = [await workerServes(1), await workerServes(2)];
  // One worker is idle and ends at once; the other drains for as long as the stream runs.
  for (const pid of pids) process.kill(pid, "SIGTERM");
  const pid = await workerServes(3);
  assert.ok(readFileSync(`/proc/${pid}/exe`).equals(readFileSync(ONE)));

  // The next build takes new connections, while the old one finishes its streams.
  const next = await serve(t, [file], config("next"));
  assert.deepEqual(await adminGet(next, "/version"), {
    version,
    build: "two",
    node: process.versions.node,
    generation: 1,
  });
  const ended = old.stop("SIGTERM");
  const second = overSocket(join(dir, "next", "t.sock"), key);
  const there = await upstream.next();
  for (const request of [there, upstreamRequest]) {
    request.send(chatFrame("last.", "stop"));
    request.send(CHAT_END);
    request.end();
  }
  for (const each of [stream, await second]) assert.match(await each.end(), /last\.(?:.*\n)*.*\[DONE\]\n\n$/);
  assert.equal(await ended, 0);
  const verified = await run([file, "ledger", "verify"], {
    ...WITHOUT_NODE,
    TOLLGATE_ADMIN_URL: next.adminUrl,
    TOLLGATE_ADMIN_TOKEN: "test-admin-token",
  });
  assert.equal(verified.status, 0, verified.out + verified.err);
});

test("the package installs without a registry, for a user and in a project, and serves", async (t) => {
  const npm = (args: readonly string[], cwd?: string) =>
    run(
      ["npm", ...args, "--offline", "--no-audit", "--no-fund"],
      { ...WITH_NODE, npm_config_cache: place("cache") },
      cwd,
    );
  const prefix = place("prefix");
  const installed = await npm(["install", "--global", "--prefix", prefix, PACKAGE]);
  assert.equal(installed.status, 0, installed.err);
  const program = join(prefix, "bin", "tollgate");
  const said = await run([program, "--version", "--json"], WITH_NODE);
  assert.equal((JSON.parse(said.out) as { build: string }).build, "one");
  assert.deepEqual(globSync(join(prefix, "lib/node_modules/**/node_modules")), []);

  const upstreamUrl = await simulator(t);
  const redis = await startRedis();
  t.after(async () => redis.stop());
  const text = testConfig({ upstreamUrl, dir: place("installed-data"), store: redis.url }, { workers: 2 });
  const gateway = await serve(t, [program], text, WITH_NODE);
  await servesAll(gateway, await keyOf(gateway, "carol"));
  await servesPages(gateway);
  await reloadsInThread(gateway, text);
  await servesAll(gateway, await keyOf(gateway, "carola"));
  const page = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  assert.deepEqual(page.match(/^tollgate_build_info.*$/gm), [
    `tollgate_build_info{version="${version}",build="one",generation="2"} 1`,
  ]);
  assert.equal(await gateway.stop("SIGTERM"), 0);

  const project = place("project");
  writeFileSync(join(project, "package.json"), '{"private":true}');
  const added = await npm(["install", PACKAGE], project);
  assert.equal(added.status, 0, added.err);
  const asked = await run(["npx", "--no-install", "tollgate", "--version"], WITH_NODE, project);
  assert.deepEqual([asked.status, asked.out], [0, `${version}\n`]);
});

test("scripts that are loaded later come from the running build, even if another build replaces its file", async (t) => {
  const file = join(place("renamed"), "tollgate");
  copyFileSync(ONE, file);
  const text = testConfig({ upstreamUrl: "http://127.0.0.1:9/v1", dir: place("renamed-data") });
  const gateway = await serve(t, [file], text);
  copyFileSync(TWO, `${file}.new`);
  renameSync(`${file}.new`, file);
  const { build: answered } = (await adminGet(gateway, "/version")) as { build: string };
  assert.equal(answered, "one");
  await servesPages({ url: gateway.adminUrl });
});

test("a start, clients and monitoring work without the script that is loaded later", async (t) => {
  const own = place("least");
  cpSync(join(dir, "one", "package"), own, { recursive: true });
  const program = [process.execPath, join(own, "bin", "tollgate.cjs")];
  const text = testConfig({ upstreamUrl: await simulator(t), dir: place("least-data") });
  const whole = await serve(t, program, text, WITH_NODE);
  const key = await keyOf(whole, "dave");
  assert.equal(await whole.stop("SIGTERM"), 0);

  const [later, elsewhere] = [join(own, "bin", "later.cjs"), join(own, "later.cjs")];
  renameSync(later, elsewhere);
  const least = await serve(t, program, text, WITH_NODE);
  await servesAll(least, key);
  const statusOf = async (path: string) => (await fetch(least.adminUrl + path)).status;
  assert.deepEqual(await Promise.all(["/healthz", "/readyz", "/metrics"].map(statusOf)), [200, 200, 200]);
  // This shows that the removed script contains the rest.
  const failed = await fetch(`${least.adminUrl}/admin/v1/accounts`);
  assert.equal(failed.status, 500);
  const saidBeside = ["x-request-id", "cache-control", "connection"].map((name) => failed.headers.get(name));
  assert.deepEqual(saidBeside.slice(1), ["no-store", "close"]);
  assert.ok(saidBeside[0]);
  // The script of another build, whose internal names would differ.
  writeFileSync(later, readFileSync(elsewhere, "latin1").replace('!=="one"', '!=="two"'), "latin1");
  const triedAgain = least.line('"event":"console_defect"', 2);
  // The gateway does not retry for a second.
  const asking = new AbortController();
  void triedAgain.finally(() => asking.abort());
  while (!asking.signal.aborted) assert.equal(await statusOf("/admin/v1/accounts"), 500);
  assert.match(await triedAgain, /the running build was replaced by another one/);
  renameSync(elsewhere, later);
  let status = 500;
  while (status === 500) status = await statusOf("/admin/v1/accounts");
  assert.equal(status, 401);
  await servesAll(least, key);
  assert.equal(await least.stop("SIGTERM"), 0);
});

test("a Node that is too old is reported, and gets no syntax that it cannot parse", async () => {
  const bin = join(dir, "one", "package", "bin", "tollgate.cjs");
  const old = `Object.defineProperty(process,"versions",{value:{node:"20.1.0"}});require(${JSON.stringify(bin)})`;
  const refused = await run([process.execPath, "-e", old], WITH_NODE);
  assert.deepEqual([refused.status, refused.out], [1, ""]);
  assert.match(refused.err, /^Tollgate needs Node 24\.\d+\.\d+ or later; /);
});

/**
 * Runs a command as in a container: this folder is the whole file system, read-only except for the volume, with the
 * kernel's /proc. The user is 1000 if this process may switch users.
 */
function asContainer(root: string, command: readonly string[]): readonly string[] {
  const script = `mount --bind "$0" "$0" && mount --bind "$0/var/lib/tollgate" "$0/var/lib/tollgate" &&
    mount --rbind /proc "$0/proc" && mount -o remount,bind,ro "$0" && exec chroot $USERSPEC "$0" "$@"`;
  const isRoot = process.getuid?.() === 0;
  const apart = ["unshare", "--mount", ...(isRoot ? [] : ["--map-root-user"])];
  return ["env", `USERSPEC=${isRoot ? "--userspec=1000:1000" : ""}`, ...apart, "sh", "-c", script, root, ...command];
}

interface SocketStream {
  until(part: string): Promise<void>;
  /** All the output, when the stream has ended. */
  end(): Promise<string>;
}

/** Requests a chat stream over a unix socket. */
async function overSocket(socketPath: string, key: string): Promise<SocketStream> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const asked = request({ socketPath, path: "/v1/chat/completions", method: "POST", headers });
  asked.end(JSON.stringify({ model: "chat-1", stream: true, messages: [{ role: "user", content: "hello" }] }));
  const [reply] = (await once(asked, "response")) as [import("node:http").IncomingMessage];
  assert.equal(reply.statusCode, 200);
  let text = "";
  reply.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
  });
  const ended = once(reply, "end");
  return {
    async until(part) {
      while (!text.includes(part)) await once(reply, "data");
    },
    async end() {
      await ended;
      return text;
    },
  };
}
