/**
 * All workers of a gateway together: which configuration each of them serves, when a new one is in force, and whether
 * the gateway should get traffic. It only exchanges messages with the processes, so that a test can replace them.
 */
import type { ChildProcess } from "node:child_process";
import type { ConfigCopy } from "../config/config.ts";
import type { AuditEntry } from "../console/audit/audit.ts";
import type { Log } from "../telemetry/log.ts";
import type { MetricsSnapshot, WorkerEnd } from "../telemetry/metrics.ts";
import { RetiredMetrics } from "../telemetry/summed-metrics.ts";
import type { Address } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import type { Generation, StopMode, WorkerReport, WorkerStart } from "./messages.ts";
import { WorkerSlot } from "./slot.ts";

const PING_EVERY_MS = 1_000;
/** How long a worker may serve an older configuration before readiness reports it. */
const BEHIND_MS_MAX = 5_000;

interface PoolParts {
  readonly workers: number;
  /** The configuration that the gateway started with. */
  readonly started: ConfigCopy;
  readonly file: WorkerStart["file"];
  readonly pretty: boolean;
  /** Starts a process for a slot, numbered from 1. */
  readonly fork: (worker: number) => ChildProcess;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when a process has ended; `cause` is undefined if it was asked to end. */
  readonly onEnded: (cause: WorkerEnd | undefined) => void;
  /** Called when a worker has an audit entry for an owner's action. */
  readonly onAudited: (entry: AuditEntry) => void;
}

/** A configuration that was sent and that not every worker has confirmed. */
interface Pending {
  readonly generation: number;
  readonly sentMs: number;
  readonly inForce: () => void;
}

export class WorkerPool {
  readonly #parts: PoolParts;
  readonly #slots: readonly WorkerSlot[];
  readonly #retired = new RetiredMetrics();
  #newest: Generation;
  /** Oldest first. */
  #pending: Pending[] = [];
  #cancelPing = () => {};

  constructor(parts: PoolParts) {
    const { workers, started, file, pretty, fork, clock, log, onEnded, onAudited } = parts;
    this.#parts = parts;
    this.#newest = { generation: 1, copy: started };
    this.#slots = Array.from({ length: workers }, (_, index) => {
      const slot: WorkerSlot = new WorkerSlot({
        worker: index + 1,
        fork: () => fork(index + 1),
        newest: () => this.#newest,
        startMessage: (newest) => ({ kind: "start", worker: index + 1, workers, file, started, newest, pretty }),
        isAlone: () => this.#slots.every((other) => other === slot || other.stage === "down"),
        clock,
        log,
        onChange: () => this.#confirm(),
        onEnded: (last, cause) => {
          this.#retired.add(last);
          onEnded(cause);
        },
        onAudited,
      });
      return slot;
    });
  }

  /**
   * Starts all workers. @returns the address where they serve. Rejects with the first reason why one of them cannot
   * start.
   */
  async start(): Promise<Address> {
    this.#watch();
    const addresses = await Promise.all(this.#slots.map((slot) => slot.start()));
    return addresses[0] as Address;
  }

  /**
   * Gives all workers a new configuration, which the parent has already accepted.
   * @returns its number, and a promise that resolves once no request can be admitted under an older one: every worker
   *   that may admit requests has confirmed it or has ended, and any that starts later begins with it.
   */
  reload(copy: ConfigCopy): { generation: number; inForce: Promise<void> } {
    const generation = this.#newest.generation + 1;
    this.#newest = { generation, copy };
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pending.push({ generation, sentMs: this.#parts.clock.monotonicMs(), inForce: resolve });
    for (const slot of this.#slots) slot.configure();
    this.#confirm();
    return { generation, inForce: promise };
  }

  /** Why the gateway should get no traffic because of its workers; empty if there is no reason. */
  reasons(): string[] {
    const serving = this.#slots.filter(({ stage }) => stage === "serving");
    const problems = this.#slots.flatMap((slot) => this.#problemsOf(slot));
    return serving.length > 0 ? problems : [...problems, ...this.#notServing()];
  }

  /** Problems that are no reason to withhold traffic: workers that do not serve while others do. */
  notes(): string[] {
    return this.#slots.some(({ stage }) => stage === "serving") ? this.#notServing() : [];
  }

  /** The state of each worker, for the metrics. */
  states(): { worker: number; up: boolean; generation: number }[] {
    return this.#slots.map(({ worker, stage, isStuck, mayAdmit, generation }) => ({
      worker,
      up: stage === "serving" && !isStuck,
      generation: mayAdmit ? generation : 0,
    }));
  }

  /** Each worker's report: a fresh one, or its last one if it is slow to answer. */
  figures(): Promise<WorkerReport[]> {
    return Promise.all(this.#slots.map((slot) => slot.figures()));
  }

  /**
   * The metrics of all processes so far: fresh ones from running processes that answer in time, and the retained
   * counters of ended ones. Both are read at the same instant, so a process that ends during the wait is in exactly one
   * of them.
   */
  async metrics(): Promise<MetricsSnapshot[]> {
    await this.figures();
    return [...this.#retired.snapshots, ...this.lastFigures.map(({ metrics }) => metrics)];
  }

  get lastFigures(): WorkerReport[] {
    return this.#slots.map((slot) => slot.lastFigures);
  }

  /** Ends all workers. Resolves when they have ended; those still running after `killAfterMs` are killed. */
  async stop(how: StopMode, killAfterMs: number): Promise<void> {
    await Promise.all(this.#slots.map((slot) => slot.stop(how, killAfterMs)));
    this.#cancelPing();
  }

  #watch(): void {
    this.#cancelPing = this.#parts.clock.after(PING_EVERY_MS, () => {
      for (const slot of this.#slots) slot.ping();
      this.#watch();
    });
  }

  #confirm(): void {
    const confirmed = Math.min(...this.#slots.filter(({ mayAdmit }) => mayAdmit).map(({ generation }) => generation));
    const pending = this.#pending;
    this.#pending = pending.filter(({ generation }) => generation > confirmed);
    for (const { generation, inForce } of pending) if (generation <= confirmed) inForce();
  }

  #problemsOf(slot: WorkerSlot): string[] {
    const { worker, stage, generation, ownReasons } = slot;
    if (slot.isStuck) return [`worker ${worker} does not answer`];
    const due = this.#pending.find((pending) => pending.generation > generation);
    const isBehind = due && this.#parts.clock.monotonicMs() - due.sentMs >= BEHIND_MS_MAX;
    return [
      ...(slot.mayAdmit && isBehind
        ? [`worker ${worker} still serves configuration ${generation}, not ${this.#newest.generation}`]
        : []),
      ...(stage === "serving" ? ownReasons.map((reason) => `worker ${worker}: ${reason}`) : []),
    ];
  }

  #notServing(): string[] {
    const others = this.#slots.filter(({ stage }) => stage !== "serving");
    return others.map(({ worker, stage }) => `worker ${worker} is ${stage}`);
  }
}
