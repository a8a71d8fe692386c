/** The processes of the soak: two model servers, a gateway between them and the clients, its store, and its accounts. */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startRedis } from "../../test/rig/redis.ts";
import type { Payer } from "./scenario.ts";

export interface SoakAccount {
  readonly name: string;
  readonly key: string;
  readonly payer: Payer;
}

export interface House {
  readonly url: string;
  readonly accounts: readonly SoakAccount[];
  /** The gateway's metrics by name, labels included. */
  metrics(): Promise<ReadonlyMap<string, number>>;
  /** Calls the admin API. @throws Error with the answer if it is not a success. */
  admin<T>(method: string, path: string, body?: object): Promise<T>;
  /** Kills one model server and restarts it on its port. */
  restartUpstream(number: number): Promise<void>;
  /** Ends the model servers for good. */
  stopUpstreams(): void;
  /** Stops the gateway. @returns its exit code, and its parsed log; lines that are not JSON appear as `{text}`. */
  stopGateway(): Promise<{ code: number | null; log: readonly LogLine[] }>;
  /** Stops what still runs and removes its files. */
  close(): Promise<void>;
}

export type LogLine = Readonly<Record<string, unknown>>;

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const UPSTREAM = fileURLToPath(new URL("upstream.ts", import.meta.url));
const ADMIN_TOKEN = "soak-admin-token-0123";
const START_TIMEOUT_MS = 30_000;
const POLL_MS = 50;
const TRIES_MAX = 5;
const TRY_AGAIN_MS = 1_000;
/** How long a model server stays down. */
const AWAY_MS = 700;

/** US dollars of each account at the start, and how many there are of each kind. */
const FUNDS: readonly { readonly payer: Payer; readonly count: number; readonly usd: string }[] = [
  { payer: "rich", count: 20, usd: "1000000" },
  { payer: "poor", count: 5, usd: "0.004" },
  { payer: "limited", count: 1, usd: "1000" },
  { payer: "broke", count: 1, usd: "0" },
];

/** Prices of every model, USD per million tokens. */
export const PRICE = { input: 1n, output: 10n };

function configOf(dir: string, store: string, ports: readonly number[]): string {
  const protocols = ["chat", "messages", "responses"];
  const names = (protocol: string) => ports.map((_, i) => `up-${i}-${protocol}`);
  const upstreams = protocols.flatMap((protocol) =>
    names(protocol).map(
      (name, i) =>
        `  ${name}: {protocol: ${protocol}, base_url: "http://127.0.0.1:${ports[i]}/v1", api_key: soak,` +
        " timeouts: {connect: 1s, first_byte: 3s, whole: 5s, idle: 3s, total: 60s}," +
        " max_concurrency: 400, health: {cool_down: 1s, cool_down_max: 3s}}",
    ),
  );
  const models = protocols.map(
    (protocol) =>
      `  ${protocol}-1: {plans: [free], price: {input: "${PRICE.input}", output: "${PRICE.output}"},` +
      " context_tokens: 200000, default_output_tokens: 64, max_output_tokens: 32000," +
      ` routes: [${names(protocol).map((name) => `{upstream: ${name}}`)}]}`,
  );
  return `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
admin_token: ${ADMIN_TOKEN}
store: ${JSON.stringify(store)}
journal: {dir: ${JSON.stringify(join(dir, "journal"))}}
sealing_keys: [a-sealing-key-of-thirty-two-chars]
trust_proxy: [127.0.0.1/32]
heartbeat: 1s
plans: {free: {}}
upstreams:
${upstreams.join("\n")}
models:
${models.join("\n")}
groups:
  money: {kind: pay_per_use, models: [chat-1, messages-1, responses-1], limits: {concurrency: 1000}}
  limited: {kind: pay_per_use, models: [chat-1, messages-1, responses-1], limits: {requests_per_minute: 30, concurrency: 2}}
`;
}

/** Starts everything; on an error it stops what it has started. */
export async function openHouse(store: "embedded" | "redis"): Promise<House> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-soak-"));
  const cleanup: (() => Promise<unknown>)[] = [];
  const close = async (): Promise<void> => {
    for (const task of cleanup.splice(0).reverse()) await task();
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    const redis = store === "redis" ? await startRedis() : undefined;
    if (redis) cleanup.push(() => redis.stop());
    const upstreams = await Promise.all([startUpstream(0), startUpstream(0)]);
    const stopUpstreams = (): void => {
      for (const upstream of upstreams) upstream.child.kill("SIGKILL");
    };
    cleanup.push(async () => stopUpstreams());
    const ports = upstreams.map(({ port }) => port);
    const log = join(dir, "log");
    const child = spawnGateway(dir, log, configOf(dir, redis?.url ?? `embedded:${join(dir, "data")}`, ports));
    const exited = once(child, "exit").then(([code]) => code as number | null);
    const stop = async (): Promise<number | null> => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGINT");
      return exited;
    };
    cleanup.push(stop);
    const { listen, admin: adminUrl } = await serving(child, log);
    const admin = adminOf(adminUrl);
    return {
      url: listen,
      accounts: await openAccounts(admin),
      metrics: () => metricsOf(adminUrl),
      admin,
      async restartUpstream(number) {
        const old = upstreams[number % upstreams.length] as Upstream;
        old.child.kill("SIGKILL");
        await wait(AWAY_MS);
        upstreams[number % upstreams.length] = await startUpstream(old.port);
      },
      stopUpstreams,
      async stopGateway() {
        const code = await stop();
        return { code, log: readFileSync(log, "utf8").split("\n").filter(Boolean).map(parseLine) };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Upstream {
  readonly child: ChildProcess;
  readonly port: number;
}

async function startUpstream(port: number): Promise<Upstream> {
  const child = fork(UPSTREAM, [String(port)]);
  const [message] = (await Promise.race([
    once(child, "message"),
    once(child, "exit").then(([code]) => Promise.reject(new Error(`a model server ended with ${code}`))),
  ])) as [{ port: number }];
  return { child, port: message.port };
}

function spawnGateway(dir: string, log: string, config: string): ChildProcess {
  const file = join(dir, "tollgate.yaml");
  writeFileSync(file, config);
  const descriptor = openSync(log, "w");
  const child = spawn(process.execPath, [MAIN, "serve", "--config", file], {
    cwd: dir,
    stdio: ["ignore", descriptor, descriptor],
  });
  closeSync(descriptor);
  return child;
}

async function serving(child: ChildProcess, log: string): Promise<{ listen: string; admin: string }> {
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    const lines = readFileSync(log, "utf8").split("\n").slice(0, -1);
    const line = lines.find((one) => one.includes('"event":"serving"'));
    if (line) return JSON.parse(line) as { listen: string; admin: string };
    if (child.exitCode !== null || performance.now() > deadlineMs) {
      throw new Error(`the gateway did not start:\n${lines.join("\n")}`);
    }
    await wait(POLL_MS);
  }
}

function adminOf(adminUrl: string): House["admin"] {
  return async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, ...(body ? { "content-type": "application/json" } : {}) };
    const send = () =>
      fetch(`${adminUrl}/admin/v1${path}`, { method, headers, ...(body ? { body: JSON.stringify(body) } : {}) });
    let reply = await send();
    // A busy store is not a finding. Reads, and writes with their own id, can be retried.
    const mayRepeat = method === "GET" || path.endsWith("/topups");
    for (let tries = 1; mayRepeat && reply.status === 503 && tries < TRIES_MAX; tries++) {
      await wait(TRY_AGAIN_MS);
      reply = await send();
    }
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`);
    return (await reply.json()) as T;
  };
}

async function openAccounts(admin: House["admin"]): Promise<SoakAccount[]> {
  const accounts: SoakAccount[] = [];
  for (const { payer, count, usd } of FUNDS) {
    for (let i = 0; i < count; i++) {
      const name = `${payer}-${i}`;
      await admin("POST", "/accounts", { name });
      if (usd !== "0") await admin("POST", `/accounts/${name}/topups`, { usd, id: "funds" });
      const group = payer === "limited" ? "limited" : "money";
      const { key } = await admin<{ key: string }>("POST", `/accounts/${name}/keys`, { group });
      accounts.push({ name, key, payer });
    }
  }
  return accounts;
}

async function metricsOf(adminUrl: string): Promise<ReadonlyMap<string, number>> {
  const text = await (
    await fetch(`${adminUrl}/metrics`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
  ).text();
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

function parseLine(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { text };
  }
}
