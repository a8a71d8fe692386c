/**
 * A gateway of several processes (`workers`, with Redis only). This process, the parent, has the admin listener, the
 * audit and a journal for operators' writes. Each worker serves clients and has its own journal. The parent accepts
 * connections and hands them to the workers in turn (node:cluster), so that a worker that dies or restarts leaves no
 * connection in a backlog of the kernel.
 */
import type { ChildProcess } from "node:child_process";
import cluster from "node:cluster";
import { fileURLToPath } from "node:url";
import { removeStaleSocket } from "../accept/socket-file.ts";
import type { ConfigCopy } from "../config/config.ts";
import type { Audit } from "../console/audit/audit.ts";
import type { RefusedSettings } from "../console/reloads.ts";
import type { UpstreamState } from "../console/routes/upstreams.ts";
import { liveMetrics } from "../telemetry/live-figures.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics, MetricsPage, MetricsSnapshot } from "../telemetry/metrics.ts";
import { summedPage, summedSnapshot } from "../telemetry/summed-metrics.ts";
import { IS_BUNDLE } from "../values/program/program.ts";
import type { Address, Settings } from "../values/settings.ts";
import { type Clock, systemClock } from "../values/time.ts";
import { forkWorker } from "./handed-over.ts";
import type { StopMode } from "./messages.ts";
import { WorkerPool } from "./pool.ts";
import { upstreamsOfAll } from "./upstreams-of-all.ts";

/** A bundle is one program for parent and worker: it asks node:cluster which one it is (build/program.ts). */
const PROGRAM = IS_BUNDLE ? (process.argv[1] as string) : fileURLToPath(new URL("../worker.ts", import.meta.url));
/** Time after the drain deadline for proper stream ends and for settlements. */
const KILL_GRACE_MS = 30_000;
/** How often the workers' figures are fetched, so that little is lost when one is killed. */
const FIGURES_EVERY_MS = 5_000;

/** The outcome of an accepted configuration. */
export interface Applied {
  /** The keys of settings that wait for a restart. */
  readonly restart: readonly string[];
  /** Groups, models, plans and cards that the previous configuration had and this one does not, as `groups.NAME`. */
  readonly gone: readonly string[];
  /** The number of this configuration: 1 is the one at the start. */
  readonly generation: number;
}

/** The parent's own gateway, which serves operators. */
interface ParentGateway {
  readonly admin: Address;
  readonly metrics: Metrics;
  readonly audit: Pick<Audit, "take">;
  apply(settings: Settings): Applied;
  reloadFailed(problems: RefusedSettings["problems"]): void;
  close(): Promise<void>;
}

/** What the parent adds to its own gateway: the workers' figures, and the reasons why they are not ready. */
interface ParentOptions {
  readonly settings: Settings;
  readonly log: Log;
  readonly clock: Clock;
  readonly serves: "operators";
  readonly page: (own: MetricsSnapshot) => Promise<MetricsPage>;
  readonly sum: (own: MetricsSnapshot) => Promise<MetricsSnapshot>;
  readonly upstreams: () => readonly UpstreamState[];
  readonly measure: (metrics: Metrics) => void;
  readonly reasons: () => readonly string[];
  readonly notes: () => readonly string[];
}

/** A gateway of one process or several, as `main.ts` uses it. */
export interface RunningGateway {
  readonly listen: Address;
  readonly admin: Address;
  reloadFailed(problems: RefusedSettings["problems"]): void;
  drain(): Promise<void>;
  close(): Promise<void>;
  /**
   * Applies a new configuration. Resolves once it is in force: from then on no request is admitted under an older one.
   * Rejects if it cannot be applied; the old one then stays in force.
   */
  reload(settings: Settings, copy: ConfigCopy): Promise<Applied>;
}

interface WorkersOptions {
  readonly file: string;
  readonly settings: Settings;
  /** The configuration from which `settings` were made. */
  readonly copy: ConfigCopy;
  readonly log: Log;
  /** Whether the workers' logs are in the form for people too. */
  readonly pretty: boolean;
  readonly clock?: Clock;
  readonly startParent: (options: ParentOptions) => Promise<ParentGateway>;
}

/** Starts the parent's gateway and all workers. Rejects with the first reason why one of them cannot serve. */
export async function startWorkers(options: WorkersOptions): Promise<RunningGateway> {
  const { file, settings, copy, log, pretty, clock = systemClock, startParent } = options;
  let { drain } = settings;
  let stopping: StopMode | undefined;
  const children = new Map<number, ChildProcess>();
  cluster.setupPrimary({ exec: PROGRAM, args: [], serialization: "advanced" });
  const pool = new WorkerPool({
    workers: settings.workers,
    started: copy,
    file,
    pretty,
    fork(worker) {
      const child = forkWorker(() =>
        pool.states().some((other) => other.worker !== worker && other.up && children.get(other.worker)?.connected),
      );
      children.set(worker, child);
      return child;
    },
    clock,
    log,
    onEnded(cause) {
      if (cause) parent.metrics.workerEnds.inc({ cause });
    },
    onAudited: (entry) => parent.audit.take(entry),
  });
  let cancel = () => {};
  const follow = (): void => {
    cancel = clock.after(FIGURES_EVERY_MS, () => void pool.figures().then(follow));
  };

  const parent = await startParent({
    settings,
    log,
    clock,
    serves: "operators",
    page: async (own) => summedPage([own, ...(await pool.metrics())]),
    sum: async (own) => summedSnapshot([own, ...(await pool.metrics()).map(liveMetrics)]),
    upstreams: () => upstreamsOfAll(pool.lastFigures.map(({ upstreams }) => upstreams)),
    measure: (metrics) => metrics.measureWorkers(pool.states()),
    reasons: () => [...(stopping ? ["draining"] : []), ...pool.reasons()],
    notes: () => pool.notes(),
  });

  let closing: Promise<void> | undefined;
  const end = (how: StopMode) => {
    stopping = how;
    closing ??= (async () => {
      const killAfterMs = (how === "drain" ? drain.lameDuckMs + drain.deadlineMs : 0) + KILL_GRACE_MS;
      await pool.stop(how, killAfterMs);
      cancel();
      await parent.close();
    })();
    return closing;
  };

  let listen: Address;
  try {
    if (settings.listen.kind === "unix") await removeStaleSocket(settings.listen.path);
    listen = await pool.start();
  } catch (error) {
    await end("close");
    throw error;
  }
  follow();

  /** Reloads are numbered in order of arrival; one that is accepted late must not hide the refusal of a later one. */
  let last = 0;
  let refused = 0;
  return {
    listen,
    admin: parent.admin,
    async reload(next, nextCopy) {
      const mine = ++last;
      const applied = parent.apply(next);
      drain = next.drain;
      await pool.reload(nextCopy).inForce;
      parent.metrics.configReloads.inc({ result: "accepted" });
      if (mine > refused) parent.metrics.configLastReloadSuccess.set(1);
      return applied;
    },
    reloadFailed(problems) {
      refused = ++last;
      parent.reloadFailed(problems);
    },
    drain: () => end("drain"),
    close: () => end("close"),
  };
}
