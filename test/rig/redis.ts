/**
 * Real Redis servers for tests: single, cluster, primary with Sentinel. Each has a temporary folder and free ports of
 * 127.0.0.1, and is stopped by process id. With `faketime` the test sets the server's time (libfaketime).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "./ports.ts";

/** The rig's own waits use real time: a server that does not start fails the test. */
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 10;
/** Above the time that Redis allows for a handshake of cluster nodes, which is at least a second. */
const MEET_AGAIN_MS = 2_000;

export interface TestRedis {
  readonly port: number;
  /** The folder with its files. */
  readonly dir: string;
  readonly url: string;
  readonly pid: number;
  /** Sends one command over a new connection. @returns the raw reply (RESP2). */
  command(...words: string[]): Promise<string>;
  /** Sends commands one after the other over one connection, for example after an AUTH. @returns the raw replies. */
  commands(...commands: readonly (readonly string[])[]): Promise<string[]>;
  /** Sets the server's clock, milliseconds since the epoch; only with `faketime`. */
  setTime(epochMs: number): void;
  /** Stops the process without its noticing (SIGSTOP), and continues it. */
  freeze(): void;
  thaw(): void;
  /**
   * Kills the process and starts another one on the same port with the data of the last SAVE or of the append-only
   * file. `whileDown` runs in between.
   */
  crash(whileDown?: () => unknown): Promise<void>;
  /** Saves the server's present data. @returns a function that kills it and starts it with that copy. */
  keepRdb(): Promise<() => Promise<void>>;
  /** The same with the append-only file, which contains every write (`appendfsync always`). */
  keepAof(): () => Promise<void>;
  /** The two halves of `crash`. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/** A server without persistence, which serves a new replica without the five seconds' wait for others. */
const SERVER_ARGS = [
  ...["--save", "", "--appendonly", "no", "--enable-debug-command", "local"],
  ...["--repl-diskless-sync-delay", "0"],
];

export interface TestRedisOptions {
  readonly faketime?: boolean;
  /** Further command line arguments of redis-server. */
  readonly args?: readonly string[];
  /** `sentinel` runs the same binary as a sentinel with this configuration file. */
  readonly sentinelConfig?: string;
}

/** Starts a server and waits until it answers. */
export async function startRedis(options: TestRedisOptions = {}): Promise<TestRedis> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-redis-"));
  const [port = 0] = await freePorts(1);
  const clock = join(dir, "clock");
  if (options.faketime) writeClock(clock, Date.UTC(2026, 0, 1));
  let process_ = launch(dir, port, clock, options);
  let exited = once(process_, "exit");
  const kill = async (): Promise<void> => {
    if (process_.exitCode !== null || process_.signalCode !== null) return;
    process_.kill("SIGCONT");
    process_.kill("SIGKILL");
    await exited;
  };
  const stop = async (): Promise<void> => {
    await kill();
    rmSync(dir, { recursive: true, force: true });
  };
  const start = async (): Promise<void> => {
    process_ = launch(dir, port, clock, options);
    exited = once(process_, "exit");
    await answering(redis, process_);
  };
  const restart = async (between: () => unknown): Promise<void> => {
    await kill();
    await between();
    await start();
  };
  const putBack = (name: string) => {
    const [place, copy] = [join(dir, name), join(dir, `${name}.kept`)];
    rmSync(copy, { recursive: true, force: true });
    cpSync(place, copy, { recursive: true });
    return () =>
      restart(() => {
        rmSync(place, { recursive: true, force: true });
        cpSync(copy, place, { recursive: true });
      });
  };
  const redis: TestRedis = {
    port,
    dir,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return process_.pid as number;
    },
    command: async (...words) => (await sendCommands(port, [words]))[0] as string,
    commands: (...commands) => sendCommands(port, commands),
    setTime: (epochMs) => writeClock(clock, epochMs),
    freeze: () => void process_.kill("SIGSTOP"),
    thaw: () => void process_.kill("SIGCONT"),
    crash: (whileDown = () => {}) => restart(whileDown),
    async keepRdb() {
      const reply = await redis.command("SAVE");
      if (!reply.startsWith("+OK")) throw new Error(`SAVE answered ${reply}`);
      return putBack("dump.rdb");
    },
    kill,
    restart: start,
    keepAof: () => putBack("appendonlydir"),
    stop,
  };
  try {
    await answering(redis, process_);
    return redis;
  } catch (error) {
    await stop();
    throw error;
  }
}

function launch(dir: string, port: number, clock: string, options: TestRedisOptions): ChildProcess {
  const network = ["--port", `${port}`, "--bind", "127.0.0.1", "--dir", dir, "--loglevel", "warning"];
  const config = join(dir, "sentinel.conf");
  if (options.sentinelConfig !== undefined) writeFileSync(config, options.sentinelConfig);
  const args =
    options.sentinelConfig === undefined
      ? [...network, ...SERVER_ARGS, ...(options.args ?? [])]
      : [config, "--sentinel", ...network, ...(options.args ?? [])];
  const child = spawn("redis-server", args, {
    stdio: "ignore",
    env: { ...process.env, ...(options.faketime ? faketimeEnvironment(clock) : {}) },
  });
  // Without a listener a missing program would end the test process; `answering` reports it.
  child.on("error", () => undefined);
  // The server is killed with the test process.
  const reap = (): void => void child.kill("SIGKILL");
  process.once("exit", reap);
  child.once("exit", () => process.removeListener("exit", reap));
  return child;
}

/**
 * libfaketime allocates memory while it looks up the real clock, and jemalloc asks for the time during its setup: each
 * waits for the other and the server hangs. With libc preloaded after it, memory comes from libc and both start.
 */
function faketimeEnvironment(clock: string): Record<string, string> {
  const [library] = globSync("/usr/lib/*/faketime/libfaketime.so.1");
  if (library === undefined) throw new Error("libfaketime is missing: install the Debian package libfaketime");
  return {
    LD_PRELOAD: `${library} libc.so.6`,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: "1",
    DONT_FAKE_MONOTONIC: "1",
    TZ: "UTC",
  };
}

/**
 * To libfaketime a date without a sign is an absolute, frozen time. It reads the fraction as a double and rounds down,
 * so half a millisecond is added. Renamed into place, so that no incomplete file is read.
 */
function writeClock(path: string, epochMs: number): void {
  const iso = new Date(epochMs).toISOString();
  writeFileSync(`${path}.new`, `${iso.slice(0, 10)} ${iso.slice(11, 23)}5\n`);
  renameSync(`${path}.new`, path);
}

async function answering(redis: TestRedis, child: ChildProcess): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    if (child.pid === undefined) throw new Error("redis-server is missing: install the Debian package redis-server");
    if (child.exitCode !== null) throw new Error(`redis-server ended at once with status ${child.exitCode}`);
    const reply = await redis.command("PING").catch(() => "");
    if (reply.startsWith("+PONG")) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error("redis-server did not answer");
}

/** One connection. A reply counts as complete when its first chunk contains its last line, which is enough here. */
async function sendCommands(port: number, commands: readonly (readonly string[])[]): Promise<string[]> {
  const socket: Socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    const replies: string[] = [];
    for (const words of commands) {
      socket.write(`*${words.length}\r\n${words.map((w) => `$${Buffer.byteLength(w)}\r\n${w}\r\n`).join("")}`);
      // A server that dies or is stopped meanwhile sends nothing.
      const [chunk] = (await once(socket, "data", { signal: AbortSignal.timeout(START_TIMEOUT_MS) })) as [Buffer];
      replies.push(chunk.toString());
    }
    return replies;
  } finally {
    socket.destroy();
  }
}

/** Makes a single server that was started for it a whole cluster. Resolves when it serves. */
export async function serveAllSlots(server: TestRedis): Promise<void> {
  await server.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383");
  await until("the cluster serves no slot", async () =>
    (await server.command("CLUSTER", "INFO")).includes("cluster_state:ok"),
  );
}

export interface TestCluster {
  /** The primaries at the start. */
  readonly nodes: readonly { host: string; port: number }[];
  /** The primaries first, then the replica of each, if requested. */
  readonly servers: readonly TestRedis[];
  stop(): Promise<void>;
}

const SLOTS = 16_384;
const PRIMARIES = 3;
const CLUSTER_ARGS = [
  ...["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"],
  // A lost primary makes only its own slots unavailable.
  ...["--cluster-require-full-coverage", "no"],
];

/**
 * Three primaries that share the slots, without replicas or with one each.
 * @param args further arguments of each.
 */
export async function startRedisCluster(
  args: readonly string[] = [],
  options: { replicas?: boolean } = {},
): Promise<TestCluster> {
  const servers: TestRedis[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server.stop()));
  };
  const count = options.replicas ? 2 * PRIMARIES : PRIMARIES;
  try {
    for (let i = 0; i < count; i++) servers.push(await startRedis({ args: [...CLUSTER_ARGS, ...args] }));
    const primaries = servers.slice(0, PRIMARIES);
    await joinCluster(primaries, servers);
    await Promise.all(servers.slice(PRIMARIES).map((server, i) => replicate(server, primaries[i] as TestRedis)));
    return { nodes: primaries.map(({ port }) => ({ host: "127.0.0.1", port })), servers, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function joinCluster(primaries: readonly TestRedis[], servers: readonly TestRedis[]): Promise<void> {
  const [first] = primaries as [TestRedis];
  for (const [i, server] of primaries.entries()) {
    const from = Math.floor((i * SLOTS) / primaries.length);
    const to = Math.floor(((i + 1) * SLOTS) / primaries.length) - 1;
    await server.command("CLUSTER", "ADDSLOTSRANGE", `${from}`, `${to}`);
    await server.command("CLUSTER", "SET-CONFIG-EPOCH", `${i + 1}`);
  }
  let metMs = Number.NEGATIVE_INFINITY;
  await until("the cluster did not come together", async () => {
    // Redis gives up a handshake that takes too long on a busy machine, and does not begin another.
    if (performance.now() - metMs > MEET_AGAIN_MS) {
      metMs = performance.now();
      for (const server of servers) {
        if (server !== first) await server.command("CLUSTER", "MEET", "127.0.0.1", `${first.port}`);
      }
    }
    const infos = await Promise.all(servers.map((server) => server.command("CLUSTER", "INFO")));
    const signs = ["cluster_state:ok", `cluster_known_nodes:${servers.length}`, `cluster_slots_assigned:${SLOTS}`];
    return infos.every((info) => signs.every((sign) => info.includes(sign)));
  });
}

async function replicate(server: TestRedis, primary: TestRedis): Promise<void> {
  const [, id = ""] = (await primary.command("CLUSTER", "MYID")).split("\r\n");
  const reply = await server.command("CLUSTER", "REPLICATE", id);
  if (!reply.startsWith("+OK")) throw new Error(`no replica: ${reply}`);
  // As the primary reports it: before that, the replica confirms nothing.
  await until("the replica has no link", async () =>
    (await primary.command("INFO", "replication")).includes("state=online"),
  );
}

async function until(failure: string, holds: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadline) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(failure);
}

/**
 * A sentinel that watches a primary under a name. @param rules further rules for it, such as `down-after-milliseconds
 * 1000`.
 */
export function startSentinel(
  name: string,
  primary: TestRedis,
  rules: Record<string, number> = {},
): Promise<TestRedis> {
  const lines = Object.entries(rules).map(([rule, value]) => `sentinel ${rule} ${name} ${value}\n`);
  return startRedis({ sentinelConfig: `sentinel monitor ${name} 127.0.0.1 ${primary.port} 1\n${lines.join("")}` });
}
