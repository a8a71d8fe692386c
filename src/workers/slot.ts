/**
 * The slot of one worker. It starts the process, watches it and stops it. If the process ends by itself or no longer
 * answers, the slot restarts it, with backoff if it ends soon after the start. A slot never has more than one process,
 * because the process owns the slot's journal. `pool.ts` handles what concerns all slots together.
 */
import type { ChildProcess } from "node:child_process";
import type { AuditEntry } from "../console/audit/audit.ts";
import type { Log } from "../telemetry/log.ts";
import type { WorkerEnd } from "../telemetry/metrics.ts";
import type { Address } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import type { FromWorker, Generation, StopMode, ToWorker, WorkerReport } from "./messages.ts";

const RESTART_MS_MIN = 200;
const RESTART_MS_MAX = 10_000;
/** Maximum backoff while no other slot has a process, because nothing serves meanwhile. */
const RESTART_ALONE_MS_MAX = 1_000;
/** If a process ran this long, the backoff starts again at its minimum. */
const WELL_AFTER_MS = 30_000;
/** How long the metrics page waits for a busy worker; after that its last figures are used. */
const METRICS_WAIT_MS = 1_000;

/**
 * Unanswered pings in a row, one per second. They are counted, not timed, so that a parent that was itself stopped or
 * suspended does not blame the worker.
 */
const SILENCE = {
  /** The worker counts as stuck and readiness reports it. */
  stuck: 3,
  /** The worker is killed and replaced; by then its requests in flight have long failed for their clients. */
  killed: 15,
  /** The same while it starts, when a long journal may keep it busy. */
  killedInStart: 120,
} as const;

/** `opening`: it may serve clients at any moment. `draining`: it has begun to end, and still serves late requests. */
export type Stage = "down" | "starting" | "opening" | "serving" | "draining";

interface SlotParts {
  /** From 1 on. */
  readonly worker: number;
  readonly fork: () => ChildProcess;
  /** The newest configuration. */
  readonly newest: () => Generation;
  /** The first message to a new process. */
  readonly startMessage: (newest: Generation) => ToWorker;
  /** Whether no other slot has a process. */
  readonly isAlone: () => boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the stage or the configuration in force has changed. */
  readonly onChange: () => void;
  /**
   * Called when a process has ended: with its last figures, which the slot drops, and with the cause unless it was
   * asked to end.
   */
  readonly onEnded: (last: WorkerReport["metrics"], cause: WorkerEnd | undefined) => void;
  readonly onAudited: (entry: AuditEntry) => void;
}

export class WorkerSlot {
  readonly #parts: SlotParts;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #stage: Stage = "down";
  /** The configuration that the process was given last, and the one that it has confirmed. */
  #given = 0;
  #generation = 0;
  #silence = 0;
  #killed = false;
  #reasons: readonly string[] = [];
  #figures: WorkerReport = NONE;
  readonly #waiting = new Set<() => void>();
  #stopping = false;
  #cancelRestart = () => {};
  #backoffMs = RESTART_MS_MIN;

  constructor(parts: SlotParts) {
    this.#parts = parts;
  }

  /** Starts the first process. @returns the address where it serves. Rejects with the reason if it cannot start. */
  start(): Promise<Address> {
    const { promise, resolve, reject } = Promise.withResolvers<Address>();
    this.#run(resolve, reject);
    return promise;
  }

  get worker(): number {
    return this.#parts.worker;
  }

  get stage(): Stage {
    return this.#stage;
  }

  /** The configuration that the process has confirmed; 0 if there is none. */
  get generation(): number {
    return this.#generation;
  }

  /** Whether the process may admit a request now, or before it reads its next message. */
  get mayAdmit(): boolean {
    return this.#stage === "opening" || this.#stage === "serving" || this.#stage === "draining";
  }

  /** Whether the process has not answered for too long. */
  get isStuck(): boolean {
    return this.mayAdmit && this.#silence >= SILENCE.stuck;
  }

  /** The process's own reasons why it should get no traffic. */
  get ownReasons(): readonly string[] {
    return this.#reasons;
  }

  /** The last figures of the process; empty if there is no process. */
  get lastFigures(): WorkerReport {
    return this.#figures;
  }

  /**
   * Gives the process the newest configuration as soon as it has confirmed the one before, so that no more than one is
   * on its way to a process that is slow or stuck. A process that starts gets it before it serves clients.
   */
  configure(): void {
    const newest = this.#parts.newest();
    if (!this.#child || this.#given !== this.#generation || newest.generation === this.#given) return;
    this.#given = newest.generation;
    this.#send({ kind: "reload", ...newest });
  }

  /** Pings the process; to be called once a second. */
  ping(): void {
    if (!this.#child || this.#killed) return;
    this.#silence++;
    const most = this.mayAdmit ? SILENCE.killed : SILENCE.killedInStart;
    if (this.#silence <= most) {
      this.#send({ kind: "ping" });
      return;
    }
    const { log, worker } = this.#parts;
    log.error({ worker, pid: this.#child.pid, seconds: most }, "a worker does not answer; it is killed and replaced");
    this.#killed = true;
    this.#child.kill("SIGKILL");
  }

  /** Asks the process for its figures: returns fresh ones, or the last ones if it is slow to answer. */
  async figures(): Promise<WorkerReport> {
    if (!this.mayAdmit || this.isStuck) return this.#figures;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.clock.after(METRICS_WAIT_MS, resolve);
    this.#waiting.add(resolve);
    this.#send({ kind: "metrics" });
    await promise;
    this.#waiting.delete(resolve);
    cancel();
    return this.#figures;
  }

  /** Asks the process to end and does not restart it. Resolves when it has ended; after `killAfterMs` it is killed. */
  async stop(how: StopMode, killAfterMs: number): Promise<void> {
    this.#stopping = true;
    this.#cancelRestart();
    this.#send({ kind: "stop", how });
    const { clock, log, worker } = this.#parts;
    const cancel = clock.after(killAfterMs, () => {
      log.error({ worker }, "a worker does not end; it is killed, and its open charges are settled at the next start");
      this.#child?.kill("SIGKILL");
    });
    await this.#ended;
    cancel();
  }

  #send(message: ToWorker): void {
    // A process without a channel is about to end, which is noticed elsewhere.
    if (this.#child?.connected) this.#child.send(message, () => {});
  }

  #run(onServing: (listen: Address) => void, onFailed: (error: Error) => void): void {
    const { fork, newest, startMessage, clock, log, worker } = this.#parts;
    const startedMs = clock.monotonicMs();
    const ended = Promise.withResolvers<void>();
    this.#ended = ended.promise;
    let reason: string | undefined;
    let isOver = false;
    const onEnd = (code: number | null, signal: NodeJS.Signals | null) => {
      if (isOver) return;
      isOver = true;
      const last = this.#figures.metrics;
      const cause = this.#stopping ? undefined : this.#killed ? "stuck" : causeOf(code, signal);
      this.#forget();
      this.#parts.onEnded(last, cause);
      ended.resolve();
      onFailed(new Error(reason ?? `worker ${worker} ended with ${signal ?? code}`));
      if (this.#stopping) return;
      const afterMs = this.#nextBackoff(clock.monotonicMs() - startedMs);
      log.error({ event: "worker_ended", worker, code, signal, reason, again_in_ms: afterMs }, "a worker has ended");
      this.#cancelRestart = clock.after(afterMs, () => this.#run(NOBODY_WAITS, NOBODY_WAITS));
    };
    let child: ChildProcess;
    try {
      child = fork();
    } catch (error) {
      reason = String(error);
      onEnd(null, null);
      return;
    }
    this.#child = child;
    this.#become("starting");
    child.on("message", (message: FromWorker) => {
      if (message.kind === "failed") reason = message.reason;
      else if (message.kind === "serving") onServing(message.listen);
      this.#hear(message);
    });
    // Not `exit`: its last messages may still be in the channel then.
    child.once("close", onEnd);
    child.on("error", (error) => {
      log.warn({ worker, reason: String(error) }, "a worker cannot be reached");
      if (child.pid !== undefined) return;
      // The system could not create a process (no memory, no descriptor), so there will be no exit event.
      reason = String(error);
      onEnd(null, null);
    });
    const first = newest();
    this.#given = first.generation;
    child.send(startMessage(first), () => {});
  }

  #hear(message: FromWorker): void {
    const { log, worker } = this.#parts;
    this.#silence = 0;
    switch (message.kind) {
      case "prepared":
        this.#generation = message.generation;
        this.configure();
        // Before `open` is sent: from here on a reload has to wait for this process.
        this.#become("opening");
        this.#send({ kind: "open" });
        break;
      case "serving":
        log.info(
          { event: "worker_serves", worker, pid: this.#child?.pid, generation: this.#generation },
          "a worker serves",
        );
        this.#become("serving");
        break;
      case "configured":
        this.#generation = message.generation;
        this.configure();
        this.#parts.onChange();
        break;
      case "draining":
        this.#become("draining");
        break;
      case "reasons":
        this.#reasons = message.reasons;
        break;
      case "audited":
        this.#parts.onAudited(message.entry);
        break;
      case "metrics":
        this.#figures = message.figures;
        for (const wake of this.#waiting) wake();
    }
  }

  #forget(): void {
    this.#child = undefined;
    this.#given = 0;
    this.#generation = 0;
    this.#silence = 0;
    this.#killed = false;
    this.#reasons = [];
    this.#figures = NONE;
    for (const wake of this.#waiting) wake();
    this.#become("down");
  }

  #become(stage: Stage): void {
    this.#stage = stage;
    this.#parts.onChange();
  }

  #nextBackoff(ranMs: number): number {
    if (ranMs >= WELL_AFTER_MS) this.#backoffMs = RESTART_MS_MIN;
    const afterMs = this.#backoffMs;
    this.#backoffMs = Math.min(afterMs * 2, RESTART_MS_MAX);
    return this.#parts.isAlone() ? Math.min(afterMs, RESTART_ALONE_MS_MAX) : afterMs;
  }
}

const NONE: WorkerReport = { metrics: [], upstreams: [] };
const NOBODY_WAITS = () => {};

function causeOf(code: number | null, signal: NodeJS.Signals | null): WorkerEnd {
  if (signal !== null) return "killed";
  return code === 0 ? "drained" : "failed";
}
