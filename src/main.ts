#!/usr/bin/env node
/** The program: reads the command line, and for `serve` runs a gateway until it is told to stop. */
import { existsSync, readFileSync } from "node:fs";
import process from "node:process";
import { type RunOptions, runCli } from "./cli.ts";
import { CONFIG_FILE, environment, formatProblem, loadConfig, type Problem, watchConfig } from "./config.ts";
import { demoKey, demoWelcome, startDemo, urlOf } from "./demo.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import type { Simulator } from "./simulator/server.ts";
import { createLog, type Log } from "./telemetry/log.ts";
import type { Settings } from "./values/settings.ts";
import { type RunningGateway, startWorkers } from "./workers.ts";

class Unusable extends Error {}

/** Settings from a file, or an error whose message is the list of complaints. */
function settingsOf(loaded: ReturnType<typeof loadConfig>): Settings {
  if ("settings" in loaded) return loaded.settings;
  throw new Unusable(loaded.problems.map(formatProblem).join("\n"));
}

async function serve(options: RunOptions): Promise<void> {
  const file = options.config ?? (existsSync(CONFIG_FILE) ? CONFIG_FILE : undefined);
  if (file === undefined) return serveDemo();
  const text = readText(file);
  const settings = settingsOf(loadConfig({ file, text }));
  const log = createLog({ level: settings.log.level, pretty: options.pretty });
  let textInForce = text;
  const gateway =
    settings.workers === 1
      ? await startGateway({ settings, log })
      : await startWorkers({
          file,
          text,
          settings,
          log,
          pretty: options.pretty === true,
          textInForce: () => textInForce,
        });
  log.info({ listen: urlOf(gateway.listen), admin: urlOf(gateway.admin) }, "tollgate serves");
  const watch = watchConfig({
    file,
    text,
    readFile(path) {
      const read = readFileSync(path, "utf8");
      if (path === file) textInForce = read;
      return read;
    },
    onSettings: (next) => reload(gateway, next, log),
    onProblems: (problems) => keepOld(gateway, problems, log),
  });
  process.on("SIGHUP", () => watch.reload());
  await untilStopped(gateway, log);
  watch.close();
}

async function serveDemo(): Promise<void> {
  const { simulator, text } = await startDemo(environment());
  const settings = settingsOf(loadConfig({ file: "(demonstration)", text }));
  const log = createLog({ level: "warn", pretty: true });
  let gateway: Gateway;
  try {
    gateway = await startGateway({ settings, log });
  } catch (error) {
    await simulator.close();
    throw error;
  }
  process.stdout.write(demoWelcome(gateway, await demoKey(gateway)));
  await untilStopped(gateway, log, simulator);
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new Unusable(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}); name another with --config`);
  }
}

function reload(gateway: RunningGateway, settings: Settings, log: Log): void {
  try {
    const { restart } = gateway.reload(settings);
    log.info(
      { restart },
      restart.length === 0 ? "configuration reloaded" : "configuration reloaded; some settings wait for a restart",
    );
  } catch (error) {
    gateway.reloadFailed();
    log.error({ reason: String(error) }, "configuration refused; the old one stays in force");
  }
}

function keepOld(gateway: RunningGateway, problems: readonly Problem[], log: Log): void {
  gateway.reloadFailed();
  log.error({ problems: problems.map(formatProblem) }, "configuration refused; the old one stays in force");
}

/**
 * Runs until SIGTERM (drain: the front has been told, running streams finish) or SIGINT (stop now). A second signal
 * ends the process at once. A defect that nobody caught is logged, then the process drains and ends: going on blindly could charge
 * wrongly (reliability row 78).
 */
async function untilStopped(gateway: RunningGateway, log: Log, simulator?: Simulator): Promise<void> {
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
    log.error({ reason: error instanceof Error ? error.stack : String(error) }, "a defect; draining, then ending");
    process.exitCode = 1;
    stop.resolve("drain");
  };
  process.on("uncaughtException", onDefect);
  process.on("unhandledRejection", onDefect);
  const how = await stop.promise;
  log.info({ how }, "stopping");
  await (how === "drain" ? gateway.drain() : gateway.close());
  await simulator?.close();
}

async function check(options: RunOptions): Promise<number> {
  const file = options.config ?? CONFIG_FILE;
  const loaded = loadConfig({ file });
  if ("settings" in loaded) {
    const { models, groups, cards } = loaded.settings.catalog;
    const counts = {
      models: models.size,
      groups: groups.size,
      cards: cards.size,
      upstreams: loaded.settings.upstreams.size,
    };
    const words = Object.entries(counts).map(([what, count]) => `${count} ${what}`);
    process.stdout.write(
      options.json ? `${JSON.stringify({ ok: true, file, ...counts })}\n` : `${file} is good: ${words.join(", ")}\n`,
    );
    return 0;
  }
  const { problems } = loaded;
  if (options.json) process.stdout.write(`${JSON.stringify({ ok: false, file, problems })}\n`);
  else process.stderr.write(`${problems.map(formatProblem).join("\n")}\n`);
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

// A reader that has seen enough (`| head`) ends the command and is no failure of it.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit(0);
});

// exitCode and not exit(): what is still to be written to a pipe must leave first.
const status = await runCli(process.argv.slice(2), {
  stdout: process.stdout,
  stderr: process.stderr,
  env: environment(),
  fetch,
  serve: (options) => serve(options),
  check,
  onInterrupt,
});
process.exitCode ||= status;
