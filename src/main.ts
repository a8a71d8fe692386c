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
import { tuneHeap, watchHeap } from "./telemetry/heap.ts";
import { type Log, openLog } from "./telemetry/log.ts";
import { codeOfFailure, errorStack } from "./values/program/error-text.ts";
import { BUILD, COMMAND } from "./values/program/program.ts";
import { type Settings, type StoreSettings, urlOf } from "./values/settings.ts";
import type { RunningGateway } from "./workers/workers.ts";

class Unusable extends Error {}

/** Returns the settings and their source. @throws an error whose message lists the problems. */
function goodOf(loaded: Loaded): Extract<Loaded, { settings: Settings }> {
  if ("settings" in loaded) return loaded;
  throw new Unusable(loaded.problems.map(formatProblem).join("\n"));
}

async function serve(options: RunOptions): Promise<void> {
  const file = options.config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined);
  if (file === undefined) return serveDemo();
  // Handled from here to the very end, because an unhandled SIGHUP kills the process.
  let onHup = (): void => {};
  let isHupPending = false;
  process.on("SIGHUP", () => {
    isHupPending = true;
    // Signals of the same turn are one reload, so that a flood of them does not block the process.
    setImmediate(() => onHup());
  });
  // If the reader of the log has exited, the process continues; logging the error would fail again and again.
  process.stdout.off("error", endWithReader);
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  const { settings, copy } = goodOf(loadConfig({ file, text: readText(file) }));
  const log = await openLog(settings.log.level, options.pretty);
  log.info({ event: "starting", ...BUILD, generation: 1, sha256: digestOf(copy) }, "tollgate starts");
  let doubts = logDoubts([], settings, log);
  // Modules that only a gateway needs are loaded here, so that the other commands start in half the time.
  const [{ startGateway }, { startWorkers }] = await Promise.all([
    import("./gateway.ts"),
    import("./workers/workers.ts"),
  ]);
  const start = async (own: GatewayOptions) => watched(await startGateway(own));
  const gateway: RunningGateway =
    settings.workers === 1
      ? inOneProcess(await start({ settings, log }))
      : await startWorkers({ file, settings, copy, log, pretty: options.pretty === true, startParent: start });
  // Before anyone can see that it serves and may want to stop it.
  const stopped = stopSignal(log);
  const addresses = { listen: urlOf(gateway.listen), admin: urlOf(gateway.admin) };
  log.info({ event: "serving", ...addresses, sha256: digestOf(copy) }, "tollgate serves");
  const watch = watchConfig({
    file,
    copy,
    onSettings: async (next, nextCopy) => {
      if (await reload(gateway, next, nextCopy, log)) doubts = logDoubts(doubts, next, log);
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

function watched(gateway: Gateway): Gateway {
  watchHeap(gateway);
  return gateway;
}

function inOneProcess(gateway: Gateway): RunningGateway {
  return { ...gateway, reload: async (settings) => gateway.reload(settings) };
}

/**
 * Ends the process as soon as its output is written. When Node exits by itself it first removes its signal handlers,
 * and a SIGHUP in those milliseconds kills the process.
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

/** The addresses that were given, so that the suggested command has them too. */
function demoAddresses(): Record<string, string> {
  const env = environment();
  const given = ["TOLLGATE_LISTEN", "TOLLGATE_ADMIN"].map((name) => [name, env[name]] as const);
  return Object.fromEntries(given.filter((one): one is [string, string] => one[1] !== undefined));
}

/**
 * Adapts an error for the demonstration, which has no settings: its addresses come from the environment, its folder is
 * the current one.
 */
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

/**
 * Logs the warnings of `tollgate check`, for operators who did not run it. @param logged the warnings that were logged
 * before.
 */
function logDoubts(logged: readonly string[], settings: Settings, log: Log): readonly string[] {
  const warnings = warningsOf(settings, Date.now());
  const fresh = warnings.filter((warning) => !logged.includes(warning));
  if (fresh.length > 0)
    log.warn({ event: "config_doubtful", warnings: fresh }, "the configuration may not be as intended");
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

/** Identifies the text that was read, by the first digits of its `sha256sum`: the file may have changed since. */
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
 * Waits for a signal that ends the gateway: SIGTERM (drain: the front has been notified, running streams finish) or
 * SIGINT (stop now). A second signal ends the process at once. An uncaught defect is logged, then the process drains
 * and ends, because continuing could charge wrongly (docs/failure-model.md row 78).
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
    const warnings = warningsOf(loaded.settings, Date.now());
    const words = Object.entries(counts).map(([what, count]) => `${count} ${count === 1 ? what.slice(0, -1) : what}`);
    const store = options.store ? await askStore(loaded.settings.store) : undefined;
    const ok = store?.problem === undefined;
    if (options.json) process.stdout.write(`${JSON.stringify({ ok, file, ...counts, warnings, store })}\n`);
    else {
      process.stdout.write(`${file} is good: ${words.join(", ")}\n`);
      for (const warning of warnings) process.stderr.write(`${file}: warning: ${warning}\n`);
      if (store !== undefined) printStore(store);
    }
    return ok ? 0 : 1;
  }
  const { problems } = loaded;
  if (options.json) process.stdout.write(`${JSON.stringify({ ok: false, file, problems })}\n`);
  else process.stderr.write(`${problems.map(formatProblem).join("\n")}\n`);
  return 1;
}

interface AskedStore {
  /** Why it cannot be used; undefined: no problem is known. */
  readonly problem: string | undefined;
  readonly warnings: readonly string[];
  readonly asked: boolean;
}

/** What `check --store` finds. An embedded store is not asked, because only its gateway may open it. */
async function askStore(settings: StoreSettings): Promise<AskedStore> {
  if (settings.kind === "embedded") return { asked: false, problem: undefined, warnings: [] };
  const { tryStore } = await import("./store/upkeep/trial.ts");
  return { asked: true, ...(await tryStore(settings)) };
}

function printStore({ asked, problem, warnings }: AskedStore): void {
  for (const warning of warnings) process.stderr.write(`store: warning: ${warning}\n`);
  if (problem !== undefined) process.stderr.write(`store: it cannot be used: ${problem}\n`);
  else if (asked) process.stdout.write("store: sign-in succeeded, and it can be used\n");
  else process.stdout.write("store: a folder that only its gateway may open; nothing was checked\n");
}

/** No file was named and the default one does not exist: most likely there has never been one. */
function nothingToCheck({ json }: RunOptions): number {
  const message = `there is no such file here; create it with: ${COMMAND} init, or name another with --config`;
  const problem: Problem = { file: CONFIG_FILE, line: 1, column: 1, key: "", message };
  if (json) process.stdout.write(`${JSON.stringify({ ok: false, file: CONFIG_FILE, problems: [problem] })}\n`);
  else process.stderr.write(`${CONFIG_FILE}: ${message}\n`);
  return 1;
}

/** Clears what a command shows while it runs, before SIGINT ends the process as usual. */
function onInterrupt(clear: () => void): () => void {
  const interrupted = (): void => {
    clear();
    process.off("SIGINT", interrupted);
    process.kill(process.pid, "SIGINT");
  };
  process.on("SIGINT", interrupted);
  return () => process.off("SIGINT", interrupted);
}

/** Stops a command that runs until it is interrupted in an orderly way. */
function onStop(stop: () => void): () => void {
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.once(signal, stop);
  return () => {
    for (const signal of signals) process.off(signal, stop);
  };
}

/**
 * If the reader closes the pipe (`| head`), a command ends without an error. If its output cannot be written for another
 * reason, such as a full disk, it says so. A gateway does not end.
 */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code === "EPIPE") process.exit(0);
  process.stderr.write(`tollgate: the output cannot be written (${codeOfFailure(error)})\n`);
  process.exit(1);
}

process.stdout.on("error", endWithReader);

// For every command: V8 accepts the code cache of what is loaded later only under these flags (build/warm.cjs).
tuneHeap();

/**
 * Whether the command was to serve: the process then exits explicitly, because what could not be closed would keep it
 * alive.
 */
let wasToServe = false;

// exitCode and not exit(), so that pending output to a pipe is written first.
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
  // A getter, so that only commands that read it open it.
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
