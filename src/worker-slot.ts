/**
 * The place of one worker: a process that is started, asked, told to end, and started again when it has ended by itself,
 * later each time that it does so soon.
 */
import type { ChildProcess } from "node:child_process";
import type { Log } from "./telemetry/log.ts";
import type { Address } from "./values/settings.ts";
import type { Clock } from "./values/time.ts";
import type { Figures, FromWorker, Stop, ToWorker } from "./worker-messages.ts";

const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 10_000;
/** A worker that has served for so long was well: the next one is not made to wait. */
const WELL_AFTER_MS = 30_000;
/** How long the page of metrics waits for a worker that is busy; its last figures stand in for it. */
const METRICS_WAIT_MS = 1_000;
/** So often in a row it may be late before it counts as stuck. */
const LATE_MAX = 2;

export interface SlotParts {
  /** From 1 on. */
  readonly worker: number;
  readonly fork: () => ChildProcess;
  /** What a new process is told first. */
  readonly startMessage: () => ToWorker;
  readonly clock: Clock;
  readonly log: Log;
  /** The last figures of a process that has ended. */
  readonly onEnded: (last: Figures["metrics"]) => Promise<void>;
}

export class WorkerSlot {
  readonly #parts: SlotParts;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #serving = false;
  #reasons: readonly string[] = [];
  #figures: Figures = NONE;
  /** Times in a row that it was asked for its figures and did not give them in time. */
  #late = 0;
  readonly #waiting = new Set<() => void>();
  #stopping = false;
  #cancelRestart = () => {};
  #backoffMs = RESTART_MS_MIN;

  constructor(parts: SlotParts) {
    this.#parts = parts;
  }

  /** Starts the first process. @returns where it serves. Rejects with the reason when it cannot. */
  start(): Promise<Address> {
    const { promise, resolve, reject } = Promise.withResolvers<Address>();
    this.#run(resolve, reject);
    return promise;
  }

  /** Why the gateway should get no traffic for this worker's sake. */
  reasons(): string[] {
    const { worker } = this.#parts;
    if (!this.#serving) return [`worker ${worker} is not running`];
    if (this.#late >= LATE_MAX) return [`worker ${worker} does not answer`];
    return this.#reasons.map((reason) => `worker ${worker}: ${reason}`);
  }

  send(message: ToWorker): void {
    if (this.#child?.connected) this.#child.send(message, () => {});
  }

  /** The process's figures as it gave them last; none when there is no process. */
  get lastFigures(): Figures {
    return this.#figures;
  }

  /** Asks the process for its figures: fresh ones, or the last ones when it is slow to answer. */
  async figures(): Promise<Figures> {
    if (!this.#serving) return this.#figures;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(METRICS_WAIT_MS, () => {
      this.#late++;
      resolve();
    });
    this.#waiting.add(resolve);
    this.send({ kind: "metrics" });
    await promise;
    this.#waiting.delete(resolve);
    cancel();
    return this.#figures;
  }

  /** Tells the process to end. Resolves when it has; after `killAfterMs` it is killed. */
  async stop(how: Stop, killAfterMs: number): Promise<void> {
    this.#stopping = true;
    this.#cancelRestart();
    this.send({ kind: "stop", how });
    const { clock, log, worker } = this.#parts;
    const cancel = clock.after(killAfterMs, () => {
      log.error({ worker }, "a worker does not end; it is killed, and what it owes is settled at the next start");
      this.#child?.kill("SIGKILL");
    });
    await this.#ended;
    cancel();
  }

  #run(onServing: (listen: Address) => void, onFailed: (error: Error) => void): void {
    const { fork, startMessage, clock, log, worker } = this.#parts;
    const child = fork();
    const startedMs = clock.monotonicMs();
    let reason: string | undefined;
    this.#child = child;
    child.on("message", (message: FromWorker) => {
      if (message.kind === "serving") {
        this.#serving = true;
        log.info({ worker, pid: child.pid }, "a worker serves");
        onServing(message.listen);
      } else if (message.kind === "failed") reason = message.reason;
      else if (message.kind === "reasons") this.#reasons = message.reasons;
      else if (message.kind === "metrics") this.#measured(message.figures);
    });
    // A process that cannot be told anything is about to end, and that is heard below.
    child.on("error", (error) => log.warn({ worker, reason: String(error) }, "a worker is not reached"));
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#ended = promise;
    child.once("exit", (code, signal) => {
      const last = this.#figures.metrics;
      this.#child = undefined;
      this.#serving = false;
      this.#reasons = [];
      this.#figures = NONE;
      this.#late = 0;
      for (const wake of this.#waiting) wake();
      void this.#parts.onEnded(last).then(resolve);
      onFailed(new Error(reason ?? `worker ${worker} ended with ${signal ?? code}`));
      if (this.#stopping) return;
      const afterMs = this.#nextBackoff(clock.monotonicMs() - startedMs);
      log.error({ worker, code, signal, reason, again_in_ms: afterMs }, "a worker has ended");
      this.#cancelRestart = clock.after(afterMs, () => this.#run(NOBODY_WAITS, NOBODY_WAITS));
    });
    child.send(startMessage(), () => {});
  }

  #measured(figures: Figures): void {
    this.#figures = figures;
    this.#late = 0;
    for (const wake of this.#waiting) wake();
  }

  #nextBackoff(ranMs: number): number {
    if (ranMs >= WELL_AFTER_MS) this.#backoffMs = RESTART_MS_MIN;
    const afterMs = this.#backoffMs;
    this.#backoffMs = Math.min(afterMs * 2, RESTART_MS_MAX);
    return afterMs;
  }
}

const NONE: Figures = { metrics: [], upstreams: [] };
const NOBODY_WAITS = () => {};
