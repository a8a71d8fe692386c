/**
 * The program of one worker process (workers.ts): a gateway for clients only, with a journal of its own. It does what its
 * parent says; a signal of its own ends it alone, and the parent starts another one.
 */
import { randomBytes } from "node:crypto";
import process from "node:process";
import { formatProblem, keepUntilRestart, loadConfig } from "./config.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import { workerJournal } from "./left-journals.ts";
import { createLog, type Log } from "./telemetry/log.ts";
import { Secret } from "./values/secret.ts";
import type { Settings } from "./values/settings.ts";
import type { FromWorker, Stop, ToWorker } from "./worker-messages.ts";

/** How often it looks whether it is still ready. */
const LOOK_EVERY_MS = 250;

function tell(message: FromWorker): Promise<void> {
  // A parent that has gone takes this process with it; until then there is nobody to tell.
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, {}, () => resolve());
    else resolve();
  });
}

function settingsOf(file: string, text: string): Settings {
  const loaded = loadConfig({ file, text });
  if ("settings" in loaded) return loaded.settings;
  throw new Error(loaded.problems.map(formatProblem).join("\n"));
}

async function start({ worker, file, startText, text, pretty }: ToWorker & { kind: "start" }): Promise<void> {
  const started = settingsOf(file, startText);
  const own = { ...started, journal: { ...started.journal, dir: workerJournal(started.journal.dir, worker) } };
  const inForce = keepUntilRestart(own, settingsOf(file, text));
  // Nobody asks a worker as an operator; without a token it would make one, and beside its own journal.
  const settings = { ...inForce, adminToken: new Secret(randomBytes(32).toString("base64url")) };
  const log = ofWorker(createLog({ level: settings.log.level, pretty }), worker);
  const gateway = await startGateway({ settings, log, serves: "clients" });

  let told = "";
  const look = setInterval(() => {
    const reasons = gateway.reasons();
    if (reasons.join() === told) return;
    told = reasons.join();
    void tell({ kind: "reasons", reasons });
  }, LOOK_EVERY_MS);
  look.unref();

  let stopping = false;
  const stop = async (how: Stop) => {
    if (stopping) return;
    stopping = true;
    await (how === "drain" ? gateway.drain() : gateway.close());
    clearInterval(look);
    await tell(await figuresOf(gateway));
    process.exit();
  };
  process.on("SIGTERM", () => void stop("drain"));
  process.on("SIGINT", () => void stop("close"));
  const onDefect = (error: unknown) => {
    log.error({ reason: error instanceof Error ? error.stack : String(error) }, "a defect; draining, then ending");
    process.exitCode = 1;
    void stop("drain");
  };
  process.on("uncaughtException", onDefect);
  process.on("unhandledRejection", onDefect);
  process.on("message", (message: ToWorker) => {
    if (message.kind === "stop") void stop(message.how);
    else if (message.kind === "reload")
      reload(gateway, () => keepUntilRestart(own, settingsOf(file, message.text)), log);
    else if (message.kind === "metrics") void figuresOf(gateway).then(tell);
  });
  await tell({ kind: "serving", listen: gateway.listen });
}

async function figuresOf(gateway: Gateway): Promise<FromWorker> {
  return { kind: "metrics", figures: { metrics: await gateway.snapshot(), upstreams: gateway.upstreams() } };
}

function reload(gateway: Gateway, read: () => Settings, log: Log): void {
  try {
    gateway.reload(read());
  } catch (error) {
    gateway.reloadFailed();
    log.error({ reason: String(error) }, "configuration refused; the old one stays in force");
  }
}

/** A log whose lines say which worker wrote them. */
function ofWorker(log: Log, worker: number): Log {
  return {
    info: (facts, message) => log.info({ worker, ...facts }, message),
    warn: (facts, message) => log.warn({ worker, ...facts }, message),
    error: (facts, message) => log.error({ worker, ...facts }, message),
    debug: (facts, message) => log.debug({ worker, ...facts }, message),
  };
}

// A terminal sends its signals to all processes of a group; until it serves, a worker leaves them to its parent.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => {});
process.once("message", (message: ToWorker) => {
  if (message.kind !== "start") return;
  start(message).catch(async (error) => {
    await tell({ kind: "failed", reason: error instanceof Error ? error.message : String(error) });
    process.exit(1);
  });
});
