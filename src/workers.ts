/**
 * A gateway of several processes (`workers`, DESIGN.md section 5: with Redis only). This one, the parent, has the admin
 * listener, the audit and a journal for operators' writes; each worker serves clients with a journal of its own. The
 * parent takes connections and hands them to the workers in turn (node:cluster), so that a worker that dies or restarts
 * leaves nothing behind in a queue of the system.
 */
import cluster from "node:cluster";
import { fileURLToPath } from "node:url";
import { removeStaleSocket } from "./accept/socket-file.ts";
import { type Gateway, startGateway } from "./gateway.ts";
import type { Log } from "./telemetry/log.ts";
import type { MetricsSnapshot } from "./telemetry/metrics.ts";
import { retire, summedPage } from "./telemetry/summed-metrics.ts";
import type { Address, Settings } from "./values/settings.ts";
import { type Clock, systemClock } from "./values/time.ts";
import type { Stop } from "./worker-messages.ts";
import { WorkerSlot } from "./worker-slot.ts";
import { upstreamsOfAll } from "./worker-upstreams.ts";

const PROGRAM = fileURLToPath(new URL("./worker.ts", import.meta.url));
/** Beyond the deadline of a drain: time for proper ends and for settlements. */
const KILL_GRACE_MS = 30_000;
/** How often the workers' figures are fetched, so that little is lost of one that is killed. */
const FIGURES_EVERY_MS = 5_000;

/** What `main.ts` does with a gateway, of one process or several. */
export type RunningGateway = Pick<Gateway, "listen" | "admin" | "reload" | "reloadFailed" | "drain" | "close">;

export interface WorkersOptions {
  readonly file: string;
  /** The text that `settings` come from. */
  readonly text: string;
  readonly settings: Settings;
  readonly log: Log;
  /** Whether the workers' logs, too, are for people to read. */
  readonly pretty: boolean;
  /** The text behind the settings that `reload` is given. */
  readonly textInForce: () => string;
  readonly clock?: Clock;
}

/** Starts the parent's part and all workers. Rejects with the first reason why one of them cannot serve. */
export async function startWorkers(options: WorkersOptions): Promise<RunningGateway> {
  const { file, text: startText, settings, log, pretty, clock = systemClock } = options;
  let text = startText;
  let retired: MetricsSnapshot = [];
  let stopping: Stop | undefined;
  cluster.setupPrimary({ exec: PROGRAM, args: [], serialization: "advanced" });
  const slots = Array.from({ length: settings.workers }, (_, index) => {
    const worker = index + 1;
    return new WorkerSlot({
      worker,
      fork: () => cluster.fork().process as ReturnType<typeof cluster.fork>["process"],
      startMessage: () => ({ kind: "start", worker, file, startText, text, pretty }),
      clock,
      log,
      async onEnded(last) {
        retired = await retire(retired, last);
      },
    });
  });
  const figures = () => Promise.all(slots.map((slot) => slot.figures()));
  let cancel = () => {};
  const follow = (): void => {
    cancel = clock.after(FIGURES_EVERY_MS, () => void figures().then(follow));
  };

  const parent = await startGateway({
    settings,
    log,
    clock,
    serves: "operators",
    page: async (own) => summedPage([own, retired, ...(await figures()).map(({ metrics }) => metrics)]),
    upstreams: () => upstreamsOfAll(slots.map(({ lastFigures }) => lastFigures.upstreams)),
    reasons: () => [...(stopping ? ["draining"] : []), ...slots.flatMap((slot) => slot.reasons())],
  });

  let closing: Promise<void> | undefined;
  const end = (how: Stop) => {
    stopping = how;
    closing ??= (async () => {
      const { lameDuckMs, deadlineMs } = settings.drain;
      const killAfterMs = (how === "drain" ? lameDuckMs + deadlineMs : 0) + KILL_GRACE_MS;
      await Promise.all(slots.map((slot) => slot.stop(how, killAfterMs)));
      cancel();
      await parent.close();
    })();
    return closing;
  };

  let listen: Address;
  try {
    if (settings.listen.kind === "unix") await removeStaleSocket(settings.listen.path);
    const addresses = await Promise.all(slots.map((slot) => slot.start()));
    listen = addresses[0] as Address;
  } catch (error) {
    await end("close");
    throw error;
  }
  follow();
  return {
    listen,
    admin: parent.admin,
    reload(next) {
      const { restart } = parent.reload(next);
      text = options.textInForce();
      for (const slot of slots) slot.send({ kind: "reload", text });
      return { restart };
    },
    reloadFailed: () => parent.reloadFailed(),
    drain: () => end("drain"),
    close: () => end("close"),
  };
}
