/**
 * A whole gateway for tests, with the simulator as its upstream: in this process (`startGatewayHere`), or as separate
 * processes (`spawnGateway`) for tests of several replicas or of signals.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { EventEmitter, on, once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { formatProblem, loadConfig } from "../../src/config/config.ts";
import { type Gateway, type GatewayOptions, startGateway } from "../../src/gateway.ts";
import { type Simulator, type SimulatorOptions, startSimulator } from "../../src/simulator/server.ts";
import type { Store } from "../../src/store/contract.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { type AccountTag, newAccountTag, newKey } from "../../src/values/key.ts";
import { parseUsd } from "../../src/values/money.ts";
import type { Settings } from "../../src/values/settings.ts";
import type { Clock } from "../../src/values/time.ts";
import { type ConfigPlaces, testConfig } from "./config.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
/** The program of the checkout, for `SpawnWorld.program`. */
export const CHECKOUT: readonly string[] = [process.execPath, MAIN];
/** The program that `npm test` has built (bundled.ts), or the checkout if a test file is run alone. */
export const PROGRAM: string = process.env.TOLLGATE_TEST_PROGRAM ?? MAIN;

/** An environment without the user's variables, for processes of `PROGRAM`, except for the compile cache. */
export const BARE_ENV: Readonly<Record<string, string>> = {
  PATH: process.env.PATH ?? "",
  ...(process.env.NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE }),
};

export { type ConfigPlaces, testConfig };

export interface TestAccount {
  readonly tag: AccountTag;
  readonly name: string;
  readonly key: string;
  readonly keyId: string;
}

/** Creates an account with funds and a key. @param options.tag random if not given. */
export async function makeAccount(
  store: Store,
  options: { usd?: string; group?: string; plan?: string; tag?: AccountTag } = {},
): Promise<TestAccount> {
  const tag = options.tag ?? newAccountTag(randomBytes);
  const name = `account-${tag}`;
  const made = await store.createAccount({ tag, name, plan: options.plan ?? "free" });
  if (made === "exists") throw new Error("a random tag was taken");
  const amount = parseUsd(options.usd ?? "10");
  if (amount === undefined) throw new Error(`not an amount: ${options.usd}`);
  if (amount > 0n) await store.credit(tag, { id: `funds-${tag}`, amount, kind: "topup", note: "test" });
  const key = newKey(tag, randomBytes);
  await store.createKey(tag, { id: key.id, hash: key.hash, group: options.group ?? "money" });
  return { tag, name, key: key.text, keyId: key.id };
}

export interface GatewayHere {
  /** `http://127.0.0.1:port`, without `/v1`. */
  readonly url: string;
  readonly port: number;
  readonly adminUrl: string;
  readonly gateway: Gateway;
  /** The settings with which it started. */
  readonly settings: Settings;
  readonly store: Store;
  readonly simulator: Simulator;
  /** Log lines so far, parsed. */
  readonly log: Record<string, unknown>[];
  account(options?: Parameters<typeof makeAccount>[1]): Promise<TestAccount>;
  /** Resolves with the first log line that matches, whether already written or later. */
  logged(matches: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>;
  /** Resolves with the line at the end of a request, when its answer has been sent and its charge is in the store. */
  requestEnd(requestId: string): Promise<Record<string, unknown>>;
  close(): Promise<void>;
}

/** Starts a gateway and its simulator in this process, in a temporary folder that `close` removes. */
export async function startGatewayHere(
  options: {
    config?: (places: ConfigPlaces) => string;
    store?: string;
    simulator?: SimulatorOptions;
    clock?: Clock;
    storeTimes?: GatewayOptions["storeTimes"];
    /** If not given, a stream whose client has disconnected is read on only if it has to be. */
    chance?: () => number;
    settings?: (settings: Settings) => Settings;
  } = {},
): Promise<GatewayHere> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-test-"));
  const simulator = await startSimulator(options.simulator);
  const lines = new LogLines();
  const log = createLog({ level: "debug", destination: lines });
  let settings: Settings;
  let gateway: Gateway;
  try {
    settings = settingsOf((options.config ?? testConfig)({ upstreamUrl: simulator.url, dir, store: options.store }));
    if (options.settings) settings = options.settings(settings);
    gateway = await startGateway({
      settings,
      log,
      ...(options.clock ? { clock: options.clock } : {}),
      ...(options.storeTimes ? { storeTimes: options.storeTimes } : {}),
      chance: options.chance ?? (() => 0.999),
    });
  } catch (error) {
    // A simulator that still runs would keep the process of the failed test alive.
    await simulator.close();
    rmSync(dir, { recursive: true, force: true });
    throw error;
  }
  const { listen, admin } = gateway;
  if (listen.kind !== "tcp" || admin.kind !== "tcp") throw new Error("tests listen on ports");
  return {
    url: `http://127.0.0.1:${listen.port}`,
    port: listen.port,
    adminUrl: `http://127.0.0.1:${admin.port}`,
    gateway,
    settings,
    store: gateway.store,
    simulator,
    log: lines.parsed,
    account: (wanted) => makeAccount(gateway.store, wanted),
    logged: (matches) => lines.find(matches),
    requestEnd: (requestId) => lines.requestEnd(requestId),
    async close() {
      await gateway.close();
      await simulator.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Collects log lines, for tests that wait for one. */
class LogLines {
  readonly parsed: Record<string, unknown>[] = [];
  readonly #waiting = new Set<(line: Record<string, unknown>) => void>();
  readonly #ends = new Map<unknown, Record<string, unknown>>();

  write(text: string): void {
    const line = JSON.parse(text) as Record<string, unknown>;
    this.parsed.push(line);
    if (line.msg === "request") this.#ends.set(line.request, line);
    for (const look of this.#waiting) look(line);
  }

  async requestEnd(requestId: string): Promise<Record<string, unknown>> {
    return this.#ends.get(requestId) ?? this.find((line) => line.msg === "request" && line.request === requestId);
  }

  find(matches: (line: Record<string, unknown>) => boolean): Promise<Record<string, unknown>> {
    const found = this.parsed.find(matches);
    if (found) return Promise.resolve(found);
    return new Promise((resolve) => {
      const look = (line: Record<string, unknown>) => {
        if (!matches(line)) return;
        this.#waiting.delete(look);
        resolve(line);
      };
      this.#waiting.add(look);
    });
  }
}

/** The metrics page once the store has every charge, which may be a moment after the clients have their answers. */
export async function settledMetrics(adminUrl: string): Promise<string> {
  for (;;) {
    const page = await (await fetch(`${adminUrl}/metrics`)).text();
    if (/^tollgate_journal_unsettled 0$/m.test(page)) return page;
  }
}

/** Settings from a text that must be valid. */
export function settingsOf(text: string): Settings {
  const loaded = loadConfig({ file: "test.yaml", text, env: {} });
  if ("settings" in loaded) return loaded.settings;
  throw new Error(loaded.problems.map(formatProblem).join("\n"));
}

export interface GatewayProcess {
  readonly url: string;
  readonly adminUrl: string;
  readonly child: ChildProcess;
  /** Its configuration file, for tests of reloads. */
  readonly file: string;
  /** All its output. */
  output(): string;
  /** Resolves with the first line (or line number `count`) that contains `text`, printed before the call or later. */
  line(text: string, count?: number): Promise<string>;
  /** Sends a signal and resolves with the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface SpawnWorld {
  /** The program to run instead of the one that `npm test` has built. */
  readonly program?: readonly string[];
  readonly openFilesMax?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Called with the process before it serves. */
  readonly onSpawn?: (child: ChildProcess) => void;
  /** Called with each line that it prints. */
  readonly onLine?: (line: string) => void;
}

/**
 * Starts `tollgate serve` as a separate process with this configuration, and resolves once it serves.
 * @param nodeArgs flags for Node.
 * @param world the environment: the value of `ulimit -n`, and additional variables.
 */
export async function spawnGateway(
  text: string,
  nodeArgs: readonly string[] = [],
  { program: other, openFilesMax, env, onSpawn, onLine }: SpawnWorld = {},
): Promise<GatewayProcess> {
  const dir = mkdtempSync(join(tmpdir(), "tollgate-process-"));
  const file = join(dir, "tollgate.yaml");
  writeFileSync(file, text);
  const command = [...(other ?? [process.execPath, ...nodeArgs, PROGRAM]), "serve", "--config", file];
  const limited = ["sh", "-c", `ulimit -n ${openFilesMax} && exec "$0" "$@"`, ...command];
  const [program, ...args] = openFilesMax === undefined ? command : limited;
  const child = spawn(program as string, args, {
    cwd: dir,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  onSpawn?.(child);
  const printed: string[] = [];
  // If a test is aborted, its gateway must not keep running.
  const reap = () => child.kill("SIGKILL");
  process.once("exit", reap);
  const exited = once(child, "exit").then(([code]) => {
    process.removeListener("exit", reap);
    rmSync(dir, { recursive: true, force: true });
    return code as number | null;
  });
  child.stderr?.on("data", (data: Buffer) => printed.push(String(data)));
  const serving = Promise.withResolvers<{ listen: string; admin: string }>();
  const lines = new EventEmitter();
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
    printed.push(`${line}\n`);
    lines.emit("line", line);
    onLine?.(line);
    if (!line.includes('"event":"serving"')) return;
    serving.resolve(JSON.parse(line) as { listen: string; admin: string });
  });
  void exited.then((code) => serving.reject(new Error(`the gateway ended with ${code}:\n${printed.join("")}`)));
  const { listen, admin } = await serving.promise;
  return {
    url: listen,
    adminUrl: admin,
    child,
    file,
    output: () => printed.join(""),
    async line(text, count = 1) {
      const found = printed.filter((line) => line.includes(text));
      const last = found[count - 1];
      if (last !== undefined) return last;
      let left = count - found.length;
      for await (const [line] of on(lines, "line")) if (line.includes(text) && --left === 0) return line;
      throw new Error("the gateway has ended");
    },
    stop(signal = "SIGINT") {
      if (child.exitCode === null) child.kill(signal);
      return exited;
    },
  };
}
