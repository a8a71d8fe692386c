/**
 * The servers between load and upstream that are measured. Each is started on free ports of 127.0.0.1 in its own folder, and names the
 * processes whose CPU time counts.
 */
import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { Store } from "../src/store/contract.ts";
import { openStore } from "../src/store/open.ts";
import { newAccountTag, newKey } from "../src/values/key.ts";
import type { Protocol } from "../src/values/protocol.ts";
import { Secret } from "../src/values/secret.ts";
import { freePorts } from "../test/rig/ports.ts";
import { startRedis } from "../test/rig/redis.ts";
import { BENCH_MODELS, type Case } from "./cases.ts";
import { childrenOf } from "./cpu.ts";
import { OTHERS } from "./others.ts";
import { answers, pidOf, stopper, until } from "./started.ts";

export interface Running {
  /** `http://host:port`, without a path. */
  readonly url: string;
  readonly key: string;
  /** One key of each account that pays, if the subject has accounts. */
  readonly keys?: readonly string[];
  /** Additional headers of each request, if the subject is configured by its requests. */
  readonly headers?: Readonly<Record<string, string>>;
  /** A key whose group allows one request a minute, if the subject has groups. */
  readonly limitedKey?: string;
  /** The subject's processes; none if there is nothing in between. */
  readonly pids: readonly number[];
  /** Processes that work for the subject and are shown separately: its Redis. */
  readonly behind: readonly number[];
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly upstreamPort: number;
  /** Folder for CPU profiles of gateways; none are made without it. */
  readonly profileDir: string | undefined;
  /** The command that starts a gateway, without its arguments; default: this Node and the checkout's `src/main.ts`. */
  readonly command?: readonly string[];
  /** What a gateway has beyond the minimum; ignored by other kinds of servers. */
  readonly shape?: GatewayShape;
}

/** How large a gateway's configuration and store are. */
export interface GatewayShape {
  /** Further models of the catalog, in the group of the key. */
  readonly moreModels?: number;
  /** Further accounts, each with a key and no funds. */
  readonly moreAccounts?: number;
  /** Accounts that pay; their keys are `Running.keys`. Default: one. */
  readonly payers?: number;
  /** Requests at once at the upstream. */
  readonly concurrency?: number;
  /** Process count; more than one needs Redis. */
  readonly workers?: number;
}

export interface Subject {
  readonly name: string;
  /** The program that must be installed; without it the subject is left out. */
  readonly needs?: string;
  /** The path of another gateway's program; undefined: the subject is left out. */
  program?(): string | undefined;
  /** Whether it does this kind of work; default: all. */
  does?(one: Case): boolean;
  /** Share of a round's requests, for slow subjects. */
  readonly share?: number;
  start(options: StartOptions): Promise<Running>;
}

const BARE_PROXY_FILE = fileURLToPath(new URL("./bare-proxy.ts", import.meta.url));
const MAIN = fileURLToPath(new URL("../src/main.ts", import.meta.url));
const ADMIN_TOKEN = "benchmark-admin-token";
const SEALING_KEY = "a-sealing-key-of-thirty-two-chars";
const ACCOUNTS_AT_ONCE = 200;
/** As in a typical upstream pool of a front; more than the load's connections. */
export const UPSTREAM_CONNECTIONS = 200;

/** The minimum of the platform: no program in this language can be below it. */
export const BARE_PROXY = "bare Node proxy";

export const SUBJECTS: readonly Subject[] = [
  { name: "direct", start: async ({ upstreamPort }) => nothing(upstreamPort) },
  { name: "nginx", needs: "nginx", start: startNginx },
  { name: BARE_PROXY, start: startBareProxy },
  { name: "tollgate, embedded", start: (options) => startGateway(options, undefined) },
  {
    name: "tollgate, embedded, 1 % traced",
    start: (options) => startGateway(options, undefined, traces(options, 0.01)),
  },
  { name: "tollgate, embedded, all traced", start: (options) => startGateway(options, undefined, traces(options, 1)) },
  { name: "tollgate, redis", needs: "redis-server", start: startGatewayOnRedis },
  {
    name: "tollgate, redis, 2 workers",
    needs: "redis-server",
    start: (options) => startGatewayOnRedis({ ...options, shape: { ...options.shape, workers: 2 } }),
  },
  ...OTHERS,
];

/** Spans go to the upstream's process, which accepts and drops them. */
function traces({ upstreamPort }: StartOptions, sample: number): string {
  return `traces: {endpoint: "http://127.0.0.1:${upstreamPort}/v1/traces", sample: ${sample}}\n`;
}

/** The name of the subject that the others are compared with. */
export const BASELINE = "nginx";

function nothing(port: number): Running {
  return { url: `http://127.0.0.1:${port}`, key: "none", pids: [], behind: [], stop: async () => {} };
}

async function startNginx({ upstreamPort }: StartOptions): Promise<Running> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-bench-nginx-"));
  const [port = 0] = await freePorts(1);
  const file = join(dir, "nginx.conf");
  writeFileSync(file, nginxConfig(dir, port, upstreamPort));
  const child = spawn("nginx", ["-p", dir, "-c", file], { stdio: ["ignore", "inherit", "inherit"] });
  await until(() => answers(port), "nginx");
  const end = stopper(child);
  const stop = () => end().finally(() => rmSync(dir, { recursive: true, force: true }));
  return { url: `http://127.0.0.1:${port}`, key: "none", pids: childrenOf(pidOf(child)), behind: [], stop };
}

/** As deployment guides recommend: one worker, keepalive connections in both directions, no buffering, an access log. */
async function startBareProxy({ upstreamPort, shape }: StartOptions): Promise<Running> {
  const upstream = `http://127.0.0.1:${upstreamPort}`;
  const child = spawn(
    process.execPath,
    [BARE_PROXY_FILE, upstream, String(shape?.concurrency ?? UPSTREAM_CONNECTIONS)],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const { port } = JSON.parse(line.toString()) as { port: number };
  const stop = async (): Promise<void> => {
    const exited = once(child, "exit");
    child.kill("SIGINT");
    await exited;
  };
  return { url: `http://127.0.0.1:${port}`, key: "none", pids: [pidOf(child)], behind: [], stop };
}

function nginxConfig(dir: string, port: number, upstreamPort: number): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (what) => `${what}_temp_path ${dir}/${what};`,
  );
  return `
${process.getuid?.() === 0 ? "user root;" : ""}
daemon off;
worker_processes 1;
pid ${dir}/nginx.pid;
error_log stderr error;
events { worker_connections 1024; }
http {
  access_log /dev/null combined;
  ${temporary.join("\n  ")}
  keepalive_requests 1000000;
  upstream model {
    server 127.0.0.1:${upstreamPort};
    keepalive ${UPSTREAM_CONNECTIONS};
    keepalive_requests 1000000;
  }
  server {
    listen 127.0.0.1:${port};
    client_max_body_size 32m;
    client_body_buffer_size 64k;
    location /v1/ {
      proxy_pass http://model;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`;
}

async function startGatewayOnRedis(options: StartOptions): Promise<Running> {
  const redis = await startRedis();
  try {
    const gateway = await startGateway(options, redis.url);
    const stop = async (): Promise<void> => {
      await gateway.stop();
      await redis.stop();
    };
    return { ...gateway, behind: [redis.pid], stop };
  } catch (error) {
    await redis.stop();
    throw error;
  }
}

async function startGateway(options: StartOptions, store: string | undefined, more = ""): Promise<Running> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-bench-"));
  const file = join(dir, "tollgate.yaml");
  const log = join(dir, "log");
  const { shape = {} } = options;
  writeFileSync(file, gatewayConfig(dir, options.upstreamPort, store, shape) + more);
  await addAccounts(shape.moreAccounts ?? 0, store ?? `embedded:${dir}/data`);
  const profile = options.profileDir ? ["--cpu-prof", `--cpu-prof-dir=${options.profileDir}`] : [];
  const run = async (command: readonly string[] = [process.execPath, ...profile, MAIN]) => {
    const [program = "", ...args] = command;
    const descriptor = openSync(log, "w");
    const stdio = ["ignore", descriptor, descriptor] satisfies StdioOptions;
    const child = spawn(program, [...args, "serve", "--config", file], { cwd: dir, stdio });
    closeSync(descriptor);
    const end = stopper(child);
    try {
      return { ...(await serving(child, log)), pid: pidOf(child), end };
    } catch (error) {
      await end();
      throw error;
    }
  };
  try {
    // In its own process: a gateway that has answered an operator needs more memory as long as it lives.
    const asked = await run(options.command ?? [process.execPath, MAIN]);
    const { keys, limitedKey } = await makeKeys(asked.admin, shape.payers ?? 1).finally(asked.end);
    const { listen, pid, end } = await run(options.command);
    const stop = () => end().finally(() => rmSync(dir, { recursive: true, force: true }));
    return { url: listen, key: keys[0] as string, keys, limitedKey, pids: [pid, ...childrenOf(pid)], behind: [], stop };
  } catch (error) {
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
}

function gatewayConfig(dir: string, upstreamPort: number, store: string | undefined, shape: GatewayShape): string {
  const concurrency = shape.concurrency ?? UPSTREAM_CONNECTIONS;
  const model = (upstream: string) =>
    `{plans: [free], price: {input: "1", output: "10"}, context_tokens: 200000, routes: [{upstream: ${upstream}}]}`;
  const protocols = Object.keys(BENCH_MODELS) as Protocol[];
  const others = Array.from({ length: shape.moreModels ?? 0 }, (_, i) => `other-${i}`);
  const names = [...Object.values(BENCH_MODELS), ...others];
  return `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
admin_token: ${ADMIN_TOKEN}
store: ${store ?? `embedded:${dir}/data`}
journal: {dir: ${dir}/journal}
sealing_keys: [${SEALING_KEY}]
workers: ${shape.workers ?? 1}
upstreams:
${protocols.map((protocol) => `  ${protocol}: {protocol: ${protocol}, base_url: "http://127.0.0.1:${upstreamPort}/v1", api_key: bench, max_concurrency: ${concurrency}}`).join("\n")}
plans: {free: {}}
models:
${protocols.map((protocol) => `  ${BENCH_MODELS[protocol]}: ${model(protocol)}`).join("\n")}
${others.map((name) => `  ${name}: ${model("chat")}`).join("\n")}
groups:
  bench: {kind: pay_per_use, models: [${names.join(", ")}], limits: {concurrency: ${concurrency}}}
  limited: {kind: pay_per_use, models: [bench], limits: {requests_per_minute: 1}}
`;
}

/** An account that sends no requests, and its key. */
async function addAccount(store: Store, name: string): Promise<void> {
  const tag = newAccountTag(randomBytes);
  const { id, hash } = newKey(tag, randomBytes);
  await store.createAccount({ tag, name, plan: "free" });
  await store.createKey(tag, { id, hash, group: "bench" });
}

/** Makes accounts that send no requests. Before the gateway starts, because only one process can open an embedded store. */
async function addAccounts(count: number, url: string): Promise<void> {
  if (count === 0) return;
  const settings = url.startsWith("embedded:")
    ? ({ kind: "embedded", dir: url.slice("embedded:".length) } as const)
    : ({ kind: "redis", url: new Secret(url) } as const);
  const store = await openStore(settings);
  try {
    await store.check();
    for (let at = 0; at < count; at += ACCOUNTS_AT_ONCE) {
      const some = Array.from({ length: Math.min(ACCOUNTS_AT_ONCE, count - at) }, (_, i) => `other-${at + i}`);
      await Promise.all(some.map((name) => addAccount(store, name)));
    }
  } finally {
    await store.close();
  }
}

/** Waits for the log line with the gateway's address. */
async function serving(child: ChildProcess, log: string): Promise<{ listen: string; admin: string }> {
  let found: string | undefined;
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`the gateway ended with ${child.exitCode}:\n${readFileSync(log)}`);
    found = readFileSync(log, "utf8")
      .split("\n")
      .find((line) => line.includes('"event":"serving"') && line.endsWith("}"));
    return found !== undefined;
  }, "the gateway");
  return JSON.parse(found as string) as { listen: string; admin: string };
}

/** Accounts with more money than a benchmark can spend, and a key of each; the first one has a limited key too. */
async function makeKeys(admin: string, payers: number): Promise<{ keys: string[]; limitedKey: string }> {
  const call = async (path: string, body: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
    const reply = await fetch(`${admin}/admin/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
    return reply.json();
  };
  const keyOf = async (name: string, group: string) =>
    ((await call(`/accounts/${name}/keys`, { group })) as { key: string }).key;
  const keys: string[] = [];
  for (let i = 0; i < payers; i++) {
    const name = `bench-${i}`;
    await call("/accounts", { name });
    await call(`/accounts/${name}/topups`, { usd: "1000000", id: "funds" });
    keys.push(await keyOf(name, "bench"));
  }
  return { keys, limitedKey: await keyOf("bench-0", "limited") };
}
