/**
 * The program of one worker process (workers/workers.ts): a gateway for clients only, with its own journal. It follows
 * the messages of its parent (workers/life.ts). A signal to this process ends only this process, and the parent starts
 * another one.
 */

import { randomBytes } from "node:crypto";
import process from "node:process";
import { type ConfigCopy, formatProblem, keepUntilRestart, loadCopy } from "./config/config.ts";
import type { AuditEntry } from "./console/audit/audit.ts";
import { prepareGateway } from "./gateway.ts";
import { workerJournal } from "./settle/recovery/orphan-journals.ts";
import { tuneHeap, watchHeap } from "./telemetry/heap.ts";
import { createLog, type Log, openLog } from "./telemetry/log.ts";
import { errorStack } from "./values/program/error-text.ts";
import { Secret } from "./values/secret.ts";
import type { Settings } from "./values/settings.ts";
import { type LifeGateway, WorkerLife } from "./workers/life.ts";
import type { FromWorker, ToWorker, WorkerStart } from "./workers/messages.ts";

/** How often readiness is checked. */
const LOOK_EVERY_MS = 250;

/** Sends a message to the parent. Resolves when it has been sent. */
function tell(message: FromWorker): Promise<void> {
  // If the parent has exited, this process ends soon too; until then messages are dropped.
  return new Promise((resolve) => {
    if (process.connected) process.send?.(message, undefined, {}, () => resolve());
    else resolve();
  });
}

function settingsOf(file: string, copy: ConfigCopy): Settings {
  const loaded = loadCopy(file, copy);
  if ("settings" in loaded) return loaded.settings;
  throw new Error(loaded.problems.map(formatProblem).join("\n"));
}

/** Audit entries of owners' actions go to the parent, which serves the audit to operators. */
const passAudit = (entry: AuditEntry) => void tell({ kind: "audited", entry });

tuneHeap();

let log: Log = createLog({ level: "error" });

async function prepare({ worker, workers, file, started, newest, pretty }: WorkerStart): Promise<LifeGateway> {
  const first = settingsOf(file, started);
  const own = {
    ...first,
    workers,
    journal: { ...first.journal, dir: workerJournal(first.journal.dir, worker) },
    // Unused, because a worker serves no operators. Without a token it would create one, next to its own journal.
    adminToken: new Secret(randomBytes(32).toString("base64url")),
  };
  log = ofWorker(await openLog(own.log.level, pretty), worker);
  const settings = keepUntilRestart(own, settingsOf(file, newest.copy));
  const gateway = await prepareGateway({ settings, log, serves: "clients", passAudit });
  watchHeap(gateway);

  let reported = "";
  const look = setInterval(() => {
    const reasons = gateway.reasons();
    if (reasons.join() === reported) return;
    reported = reasons.join();
    void tell({ kind: "reasons", reasons });
  }, LOOK_EVERY_MS);
  look.unref();
  return {
    configure: ({ copy }) => void gateway.apply(settingsOf(file, copy)),
    open: async () => (await gateway.open()).listen,
    drain: () => gateway.drain(),
    close: () => gateway.close(),
    figures: async () => ({ metrics: await gateway.snapshot(), upstreams: gateway.upstreams() }),
  };
}

/** A log whose lines say which worker wrote them. */
function ofWorker(log: Log, worker: number): Log {
  return {
    info: (facts, message) => log.info({ worker, ...facts }, message),
    warn: (facts, message) => log.warn({ worker, ...facts }, message),
    error: (facts, message) => log.error({ worker, ...facts }, message),
    debug: (facts, message) => log.debug({ worker, ...facts }, message),
    written: (members, message) => log.written(`,"worker":${JSON.stringify(worker)}${members}`, message),
  };
}

const life = new WorkerLife({
  prepare,
  tell,
  // Explicitly, not by running out of work: a SIGHUP while Node cleans up would kill the process.
  exit: (code) => process.exit(code),
  onRefused: (error) =>
    log.error(
      { event: "config_refused", reason: errorStack(error) },
      "a configuration that the parent has accepted is refused",
    ),
});

// A terminal sends its signals to all processes of a group; until it serves, a worker leaves them to its parent.
process.on("SIGTERM", () => life.isOpen && life.stop("drain"));
process.on("SIGINT", () => life.isOpen && life.stop("close"));
process.on("SIGHUP", () => {});
// Errors when the reader of the log has exited are ignored, as in main.ts.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
const onDefect = (error: unknown) => {
  log.error({ reason: errorStack(error) }, "a defect; draining, then ending");
  life.defect(error);
};
process.on("uncaughtException", onDefect);
process.on("unhandledRejection", onDefect);
process.on("message", (message: ToWorker) => life.hear(message));
