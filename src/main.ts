#!/usr/bin/env node
/** The program: reads the command line, and for `serve` runs a gateway until it is stopped. */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import process from "node:process";
import { type RunOptions, runCli } from "./cli/cli.ts";
import {
  CONFIG_FILE,
  type ConfigCopy,
  environment,
  formatProblem,
  type Loaded,
  loadConfig,
  type Problem,
  warningsOf,
  watchConfig,
} from "./config/config.ts";
import { ListenFailure } from "./config/listen-failure.ts";
import type { Gateway, GatewayOptions } from "./gateway.ts";
import { StoreError } from "./store/contract.ts";
import { tendHeap, tuneHeap } from "./telemetry/heap.ts";
import { type Log, openLog } from "./telemetry/log.ts";
import { errorStack } from "./values/program/error-text.ts";
import { BUILD, COMMAND } from "./values/program/program.ts";
import { type Settings, type StoreSettings, urlOf } from "./values/settings.ts";
import type { RunningGateway } from "./workers/workers.ts";

class Unusable extends Error {}

/** Settings from a file and what they were made of, or an error whose message is the list of complaints. */
function goodOf(loaded: Loaded): Extract<Loaded, { settings: Settings }> {
  if ("settings" in loaded) return loaded;
  throw new Unusable(loaded.problems.map(formatProblem).join("\n"));
}

async function serve(options: RunOptions): Promise<void> {
  const file = options.config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined);
  if (file === undefined) return serveDemo();
  // From here to the very end, or one that comes early or late would kill the process.
  let onHup = (): void => {};
  let isHupPending = false;
  process.on("SIGHUP", () => {
    isHupPending = true;
    // Those that come in one turn are one reload, so that a flood of them stops nothing.
    setImmediate(() => onHup());
  });
  // The reader of the log has gone. That is no reason to end, and logging it would fail again and again.
  process.stdout.off("error", endWithReader);
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  const { settings, copy } = goodOf(loadConfig({ file, text: readText(file) }));
  const log = await openLog(settings.log.level, options.pretty);
  log.info({ event: "starting", ...BUILD, generation: 1, sha256: digestOf(copy) }, "tollgate starts");
  let doubts = tellDoubts([], settings, log);
  // What only a gateway needs is read here, so that the other commands start in half the time.
  const [{ startGateway }, { startWorkers }] = await Promise.all([
    import("./gateway.ts"),
    import("./workers/workers.ts"),
  ]);
  const start = async (own: GatewayOptions) => tended(await startGateway(own));
  const gateway: RunningGateway =
    settings.workers === 1
      ? inOneProcess(await start({ settings, log }))
      : await startWorkers({ file, settings, copy, log, pretty: options.pretty === true, startParent: start });
  // Before anybody can learn that it serves, and may want it to stop.
  const stopped = stopSignal(log);
  const addresses = { listen: urlOf(gateway.listen), admin: urlOf(gateway.admin) };
  log.info({ event: "serving", ...addresses, sha256: digestOf(copy) }, "tollgate serves");
  const watch = watchConfig({
    file,
    copy,
    onSettings: async (next, nextCopy) => {
      if (await reload(gateway, next, nextCopy, log)) doubts = tellDoubts(doubts, next, log);
    },
    onProblems: (problems) => keepOld(gateway, problems, log),
  });
  onHup = () => {
    if (isHupPending) watch.reload();
    isHupPending = false;
  };
  onHup();
  await end(gateway, await stopped, log);
  watch.close();
  log.info({ event: "stopped" }, "tollgate has stopped");
  await leave();
}

function tended(gateway: Gateway): Gateway {
  tendHeap(gateway);
  return gateway;
}

function inOneProcess(gateway: Gateway): RunningGateway {
  return { ...gateway, reload: async (settings) => gateway.reload(settings) };
}

/**
 * Ends the process as soon as what it has printed is out. When Node ends by itself it first gives up its signal handlers,
 * and a SIGHUP in those milliseconds kills it.
 */
async function leave(): Promise<never> {
  for (const stream of [process.stdout, process.stderr])
    await new Promise<void>((resolve) => stream.write("", () => resolve()));
  process.exit();
}

async function serveDemo(): Promise<void> {
  const [{ startGateway }, { demoKey, demoWelcome, startDemo }] = await Promise.all([
    import("./gateway.ts"),
    import("./demo.ts"),
  ]);
  const { simulator, text } = await startDemo(environment());
  const { settings } = goodOf(loadConfig({ file: "(demonstration)", text }));
  const log = await openLog("warn", true);
  let gateway: Gateway;
  try {
    gateway = await startGateway({ settings, log });
  } catch (error) {
    await simulator.close();
    throw ofDemo(error);
  }
  const stopped = stopSignal(log);
  process.stdout.write(demoWelcome(gateway, await demoKey(gateway)));
  await end(gateway, await stopped, log);
  await simulator.close();
}

/** Those that are given already, so that the command that is proposed has them too. */
function demoAddresses(): Record<string, string> {
  const env = environment();
  const given = ["TOLLGATE_LISTEN", "TOLLGATE_ADMIN"].map((name) => [name, env[name]] as const);
  return Object.fromEntries(given.filter((one): one is [string, string] => one[1] !== undefined));
}

/** The demonstration has no settings: its addresses come from the environment, its folder is where it is started. */
function ofDemo(error: unknown): unknown {
  if (error instanceof ListenFailure) {
    const { setting, problem, instead } = error;
    const addresses = { ...demoAddresses(), [`TOLLGATE_${setting.toUpperCase()}`]: instead ?? "HOST:PORT" };
    const set = Object.entries(addresses).map(([name, value]) => `${name}=${value} `);
    const other = `${set.join("")}${COMMAND} serve`;
    return new Unusable(`${problem}; stop that program, or take another address: ${other}`);
  }
  if (error instanceof StoreError) {
    return new Unusable(
      `${error.message}. Without a tollgate.yaml the data goes below this folder: start it elsewhere`,
    );
  }
  return error;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new Unusable(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}); name another with --config`);
  }
}

/** Says what `tollgate check` warns of: in the log it is found by those who never ran that. @param told what was said before. */
function tellDoubts(told: readonly string[], settings: Settings, log: Log): readonly string[] {
  const warnings = warningsOf(settings);
  const fresh = warnings.filter((warning) => !told.includes(warning));
  if (fresh.length > 0)
    log.warn({ event: "config_doubtful", warnings: fresh }, "the configuration may not be as meant");
  return warnings;
}

/** @returns whether the settings are in force. */
async function reload(gateway: RunningGateway, settings: Settings, copy: ConfigCopy, log: Log): Promise<boolean> {
  try {
    const { restart, gone, generation } = await gateway.reload(settings, copy);
    log.info(
      { event: "config_reloaded", generation, sha256: digestOf(copy), restart },
      restart.length === 0 ? "configuration reloaded" : "configuration reloaded; some settings wait for a restart",
    );
    if (gone.length > 0) {
      log.warn(
        { event: "config_lacks", generation, gone },
        "the configuration no longer has what keys, accounts or codes may name",
      );
    }
    return true;
  } catch (error) {
    gateway.reloadFailed([{ file: "", line: 1, column: 1, key: "", message: String(error) }]);
    log.error({ event: "config_refused", reason: String(error) }, "configuration refused; the old one stays in force");
    return false;
  }
}

/** Which text it was, as `sha256sum` begins: the file may have another one by the time that somebody looks. */
function digestOf({ text }: ConfigCopy): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

function keepOld(gateway: RunningGateway, problems: readonly Problem[], log: Log): void {
  gateway.reloadFailed(problems);
  const found = problems.map(formatProblem);
  log.error(
    { event: "config_refused", reason: found.join("; "), problems: found },
    "configuration refused; the old one stays in force",
  );
}

/**
 * Waits for what ends a gateway: SIGTERM (drain: the front has been notified, running streams finish) or SIGINT (stop
 * now). A second signal ends the process at once. A defect that nobody caught is logged, then the process drains and
 * ends: going on blindly could charge wrongly (docs/failure-model.md row 78).
 */
function stopSignal(log: Log): Promise<"drain" | "close"> {
  const stop = Promise.withResolvers<"drain" | "close">();
  let signals = 0;
  const onSignal = (how: "drain" | "close") => () => {
    signals++;
    if (signals > 1) process.exit(1);
    stop.resolve(how);
  };
  process.on("SIGTERM", onSignal("drain"));
  process.on("SIGINT", onSignal("close"));
  const onDefect = (error: unknown) => {
    log.error({ reason: errorStack(error) }, "a defect; draining, then ending");
    process.exitCode = 1;
    stop.resolve("drain");
  };
  process.on("uncaughtException", onDefect);
  process.on("unhandledRejection", onDefect);
  return stop.promise;
}

async function end(gateway: Pick<RunningGateway, "drain" | "close">, how: "drain" | "close", log: Log): Promise<void> {
  log.info({ event: "stopping", how }, "tollgate stops");
  await (how === "drain" ? gateway.drain() : gateway.close());
}

async function check(options: RunOptions): Promise<number> {
  const file = options.config ?? CONFIG_FILE;
  if (options.config === undefined && !existsSync(file)) return nothingToCheck(options);
  const loaded = loadConfig({ file });
  if ("settings" in loaded) {
    const { models, groups, cards } = loaded.settings.catalog;
    const counts = {
      models: models.size,
      groups: groups.size,
      cards: cards.size,
      upstreams: loaded.settings.upstreams.size,
    };
    const warnings = warningsOf(loaded.settings);
    const words = Object.entries(counts).map(([what, count]) => `${count} ${count === 1 ? what.slice(0, -1) : what}`);
    const store = options.store ? await askStore(loaded.settings.store) : undefined;
    const ok = store?.problem === undefined;
    if (options.json) process.stdout.write(`${JSON.stringify({ ok, file, ...counts, warnings, store })}\n`);
    else {
      process.stdout.write(`${file} is good: ${words.join(", ")}\n`);
      for (const warning of warnings) process.stderr.write(`${file}: warning: ${warning}\n`);
      if (store !== undefined) tellOfStore(store);
    }
    return ok ? 0 : 1;
  }
  const { problems } = loaded;
  if (options.json) process.stdout.write(`${JSON.stringify({ ok: false, file, problems })}\n`);
  else process.stderr.write(`${problems.map(formatProblem).join("\n")}\n`);
  return 1;
}

interface AskedStore {
  /** Why it cannot be used; undefined: nothing is known to be wrong with it. */
  readonly problem: string | undefined;
  readonly warnings: readonly string[];
  readonly asked: boolean;
}

/** What `check --store` finds. One that is a folder is its gateway's alone. */
async function askStore(settings: StoreSettings): Promise<AskedStore> {
  if (settings.kind === "embedded") return { asked: false, problem: undefined, warnings: [] };
  const { tryStore } = await import("./store/upkeep/trial.ts");
  return { asked: true, ...(await tryStore(settings)) };
}

function tellOfStore({ asked, problem, warnings }: AskedStore): void {
  for (const warning of warnings) process.stderr.write(`store: warning: ${warning}\n`);
  if (problem !== undefined) process.stderr.write(`store: it cannot be used: ${problem}\n`);
  else if (asked) process.stdout.write("store: it lets us in and can be used\n");
  else process.stdout.write("store: a folder that its gateway alone opens; nothing was asked\n");
}

/** Nobody has named a file, and the one that is looked for is not there: most likely there has never been one. */
function nothingToCheck({ json }: RunOptions): number {
  const message = `there is no such file here; write one with: ${COMMAND} init, or name another with --config`;
  const problem: Problem = { file: CONFIG_FILE, line: 1, column: 1, key: "", message };
  if (json) process.stdout.write(`${JSON.stringify({ ok: false, file: CONFIG_FILE, problems: [problem] })}\n`);
  else process.stderr.write(`${CONFIG_FILE}: ${message}\n`);
  return 1;
}

/** What a command shows while it runs is taken away before the signal ends the process as it would any other. */
function onInterrupt(clear: () => void): () => void {
  const interrupted = (): void => {
    clear();
    process.off("SIGINT", interrupted);
    process.kill(process.pid, "SIGINT");
  };
  process.on("SIGINT", interrupted);
  return () => process.off("SIGINT", interrupted);
}

/** A command that goes on until it is interrupted ends in good order. */
function onStop(stop: () => void): () => void {
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.once(signal, stop);
  return () => {
    for (const signal of signals) process.off(signal, stop);
  };
}

/** A reader that has seen enough (`| head`) ends a command and is no failure of it; it never ends a gateway. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
}

process.stdout.on("error", endWithReader);

// Every command: V8 takes the code cache of what is read later under these settings only (build/warm.cjs).
tuneHeap();

/** A gateway that ends, or has never begun, leaves: what it could not close would keep the process. */
let wasToServe = false;

// exitCode and not exit(): what is still to be written to a pipe must leave first.
void runCli(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  env: environment(),
  fetch,
  serve(options) {
    wasToServe = true;
    return serve(options);
  },
  check,
  simulate: async (port) => (await import("./simulator/program.ts")).runSimulator(port),
  schema: async () => (await import("./config/schema/file.ts")).schemaFileText(),
  onInterrupt,
  onStop,
  // Opened by the commands that read it.
  get stdin() {
    return process.stdin;
  },
  complaints(file, text, set) {
    const env = { ...Object.fromEntries(set.map((name) => [name, "set"])), ...environment() };
    const loaded = loadConfig({ file, text, env });
    return "settings" in loaded ? [] : loaded.problems.map(formatProblem);
  },
}).then((status) => {
  process.exitCode ||= status;
  return wasToServe ? leave() : undefined;
});
