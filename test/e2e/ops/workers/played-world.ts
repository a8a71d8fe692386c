/**
 * A parent's fleet and its workers' lives, both real, in a time that the test moves. Processes start slowly or not at
 * all, are killed, stopped and continued, and channels deliver late but in order. Gateways are fakes: a fake has only
 * the number of the configuration by which it would price a request.
 */
import assert from "node:assert/strict";
import type { ChildProcess } from "node:child_process";
import { EventEmitter } from "node:events";
import { createLog } from "../../../../src/telemetry/log.ts";
import type { WorkerEnd } from "../../../../src/telemetry/metrics.ts";
import type { Clock } from "../../../../src/values/time.ts";
import { WorkerLife } from "../../../../src/workers/life.ts";
import type { FromWorker, ToWorker, WorkerStart } from "../../../../src/workers/messages.ts";
import { WorkerPool } from "../../../../src/workers/pool.ts";

const LISTEN = { kind: "tcp", host: "127.0.0.1", port: 1 } as const;
const LATENCY_MS_MAX = 40;
const PREPARE_MS_MAX = 4_000;
const OPEN_MS_MAX = 100;
const DRAIN_MS_MAX = 20_000;
/** More than the pings after which a worker counts as stuck, with their travel time. */
export const STUCK_AFTER_MS = 4_500;
/** The longest delay of a start while no worker serves, with a margin for what is under way. */
const NO_WORKER_MS_MAX = 1_100;

/** Something that happens in one process; it waits while that process is stopped. */
interface Due {
  readonly atMs: number;
  readonly order: number;
  readonly where: Running;
  readonly run: () => void;
}

/** What can be stopped and continued: the parent, or a worker's process. */
class Running {
  isStopped = false;
  isDead = false;
  /** When it was last stopped or continued. */
  changedMs = 0;
  readonly backlog: Due[] = [];
}

/** The process of one worker, as its parent and as the test see it. */
export class FakeWorker extends EventEmitter {
  readonly running = new Running();
  readonly pid: number;
  readonly life: WorkerLife;
  readonly #world: World;
  connected = true;
  worker = 0;
  /** The configuration by which it would price a request; 0 while it has no gateway. */
  generation = 0;
  /** Whether a request can be admitted here. */
  isOpen = false;
  /** Whether the parent has received the message that it ends. */
  isLeaving = false;
  #toWorkerMs = 0;
  #toParentMs = 0;

  constructor(world: World, pid: number) {
    super();
    this.#world = world;
    this.pid = pid;
    this.life = new WorkerLife({
      prepare: (start) => this.#prepare(start),
      tell: (message) => this.#tell(message),
      exit: (code) => this.end(code, null),
      onRefused: () => {},
    });
  }

  send(message: ToWorker): void {
    if (message.kind === "start") this.worker = message.worker;
    this.#toWorkerMs = this.#world.later(this.#toWorkerMs);
    this.#world.at(this.#toWorkerMs, this.running, () => this.life.hear(message));
  }

  kill(signal: NodeJS.Signals): boolean {
    this.#world.onKilledByParent(this);
    this.end(null, signal);
    return true;
  }

  /** The process has ended; messages that it sent before still arrive. */
  end(code: number | null, signal: string | null): void {
    if (this.running.isDead) return;
    this.#world.continue(this.running);
    this.running.isDead = true;
    this.isOpen = false;
    this.connected = false;
    this.#toParentMs = this.#world.later(this.#toParentMs);
    this.#world.at(this.#toParentMs, this.#world.parent, () => this.emit("close", code, signal));
  }

  async #tell(message: FromWorker): Promise<void> {
    this.#toParentMs = this.#world.later(this.#toParentMs);
    this.#world.at(this.#toParentMs, this.#world.parent, () => {
      if (message.kind === "draining") this.isLeaving = true;
      this.emit("message", message);
    });
  }

  async #prepare(start: WorkerStart) {
    this.#world.onStarted(start);
    await this.#world.pass(PREPARE_MS_MAX, this.running);
    if (this.#world.failingStarts > 0) {
      this.#world.failingStarts--;
      throw new Error("the store is not fit");
    }
    this.generation = start.newest.generation;
    return {
      configure: ({ generation }: { generation: number }) => {
        if (this.#world.refusals > 0) {
          this.#world.refusals--;
          this.#world.refusedMs = this.#world.nowMs;
          throw new Error("cannot be taken here");
        }
        this.generation = generation;
      },
      open: async () => {
        // Clients may connect before this process itself knows that it listens.
        this.isOpen = true;
        await this.#world.pass(OPEN_MS_MAX, this.running);
        return LISTEN;
      },
      drain: async () => {
        await this.#world.pass(DRAIN_MS_MAX, this.running);
        this.isOpen = false;
      },
      close: async () => {
        this.isOpen = false;
      },
      figures: async () => ({ metrics: [], upstreams: [] }),
    };
  }
}

export class World {
  readonly parent = new Running();
  readonly fleet: WorkerPool;
  readonly workers: FakeWorker[] = [];
  readonly ends: (WorkerEnd | undefined)[] = [];
  readonly #count: number;
  readonly #random: () => number;
  readonly #started = { text: "the start's", files: new Map([["/run/password", "the start's"]]) };
  #dues: Due[] = [];
  #order = 0;
  #lateStarts = 0;
  /** When a process last was stopped, continued, or killed while it was stopped. */
  #stoppedMs = Number.NEGATIVE_INFINITY;
  nowMs = 0;
  newest = 1;
  /** The newest configuration that is reported as in force. */
  inForce = 1;
  failingStarts = 0;
  refusals = 0;
  /** When a worker last refused a configuration: until it has ended it is reported as having an older one. */
  refusedMs = Number.NEGATIVE_INFINITY;
  isEnding = false;
  /** Since when there is no process at all. */
  #noWorkerSinceMs: number | undefined;

  /** @param random a number in [0, 1). */
  constructor(count: number, random: () => number) {
    this.#count = count;
    this.#random = random;
    const clock: Clock = {
      monotonicMs: () => this.nowMs,
      wallMs: () => this.nowMs,
      after: (ms, task) => {
        let isOff = false;
        this.at(this.nowMs + ms, this.parent, () => isOff || task());
        return () => {
          isOff = true;
        };
      },
    };
    this.fleet = new WorkerPool({
      workers: count,
      started: this.#started,
      file: "tollgate.yaml",
      pretty: false,
      fork: () => this.#fork(),
      clock,
      log: createLog({ level: "silent" }),
      onEnded: (cause) => void this.ends.push(cause),
      onAudited() {},
    });
  }

  /** Schedules something in a process. */
  at(atMs: number, where: Running, run: () => void): void {
    this.#dues.push({ atMs, order: this.#order++, where, run });
  }

  /** When a message that is sent now arrives, never before the previous one. */
  later(lastMs: number): number {
    return Math.max(lastMs, this.nowMs + this.#random() * LATENCY_MS_MAX);
  }

  /** Takes a random time of a process; longer if it is stopped meanwhile, and forever if it is killed. */
  pass(msMax: number, where: Running): Promise<void> {
    return new Promise((resolve) => this.at(this.nowMs + this.#random() * msMax, where, resolve));
  }

  get living(): FakeWorker[] {
    return this.workers.filter(({ running }) => !running.isDead);
  }

  /** The process of a slot, counted from 0, if there is one. */
  workerAt(place: number): FakeWorker | undefined {
    return this.living.find(({ worker }) => worker === (place % this.#count) + 1);
  }

  reload(): void {
    const { generation, inForce } = this.fleet.reload({ text: `${++this.newest}`, files: new Map() });
    assert.equal(generation, this.newest);
    void inForce.then(() => {
      this.inForce = Math.max(this.inForce, generation);
      this.check();
    });
  }

  stop(running: Running): void {
    if (running.isStopped) return;
    running.isStopped = true;
    running.changedMs = this.nowMs;
    this.#stoppedMs = this.nowMs;
  }

  continue(running: Running): void {
    if (!running.isStopped) return;
    running.isStopped = false;
    running.changedMs = this.nowMs;
    this.#stoppedMs = this.nowMs;
    for (const due of running.backlog.splice(0)) this.at(this.nowMs, running, due.run);
  }

  /** Advances the time, one event after the other; every invariant is checked after each. */
  async advance(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    for (;;) {
      await settled();
      const [next] = this.#dues
        .filter(({ atMs }) => atMs <= endMs)
        .sort((a, b) => a.atMs - b.atMs || a.order - b.order);
      if (!next) break;
      this.#dues = this.#dues.filter((due) => due !== next);
      this.nowMs = Math.max(this.nowMs, next.atMs);
      if (next.where.isDead) continue;
      if (next.where.isStopped) next.where.backlog.push(next);
      else next.run();
      await settled();
      this.check();
    }
    this.nowMs = endMs;
    this.check();
  }

  onStarted({ started, newest }: WorkerStart): void {
    assert.deepEqual(started, this.#started, "settings that need a restart are those of the start");
    assert.ok(newest.generation >= this.inForce, "a new worker gets the newest configuration");
  }

  onKilledByParent({ running }: FakeWorker): void {
    if (this.isEnding) return;
    const sinceMs = this.nowMs - running.changedMs;
    if (running.isStopped) assert.ok(sinceMs > STUCK_AFTER_MS, "a worker was killed too soon");
    // Its answer may be on its way.
    else assert.ok(sinceMs <= 2 * LATENCY_MS_MAX, "a worker that answers was killed");
  }

  check(): void {
    for (const { isOpen, generation, worker } of this.living) {
      if (isOpen)
        assert.ok(generation >= this.inForce, `worker ${worker} prices by ${generation}, not ${this.inForce}`);
    }
    assert.equal(this.#lateStarts, 0, "a worker is started while the gateway ends");
    for (const { up, worker } of this.fleet.states()) {
      assert.ok(
        !up || !this.living.some((one) => one.worker === worker && one.isLeaving),
        `worker ${worker} is leaving`,
      );
    }
    const places = this.living.map(({ worker }) => worker);
    assert.equal(new Set(places).size, places.length, "two processes have one journal");
    this.#checkThatAWorkerStarts();
    if (!this.parent.isStopped && this.nowMs - this.parent.changedMs > STUCK_AFTER_MS) this.#checkReadiness();
  }

  #fork(): ChildProcess {
    // Not an assertion here: the caller who starts a process takes an error for one of the system.
    if (this.isEnding) this.#lateStarts++;
    const worker = new FakeWorker(this, this.workers.length + 1);
    this.workers.push(worker);
    return worker as unknown as ChildProcess;
  }

  #checkThatAWorkerStarts(): void {
    if (this.living.length > 0 || this.isEnding || this.workers.length === 0 || this.parent.isStopped) {
      this.#noWorkerSinceMs = undefined;
    } else {
      this.#noWorkerSinceMs ??= this.nowMs;
      assert.ok(this.nowMs - this.#noWorkerSinceMs <= NO_WORKER_MS_MAX, "no worker is started");
    }
  }

  #checkReadiness(): void {
    const reasons = this.fleet.reasons();
    const stuck = this.living.filter(
      ({ running, isOpen }) => isOpen && running.isStopped && this.nowMs - running.changedMs > STUCK_AFTER_MS,
    );
    for (const { worker } of stuck) assert.ok(reasons.includes(`worker ${worker} does not answer`), String(reasons));
    const isQuiet =
      this.nowMs - this.refusedMs > DRAIN_MS_MAX + STUCK_AFTER_MS &&
      this.nowMs - this.#stoppedMs > STUCK_AFTER_MS &&
      this.living.every(({ running }) => !running.isStopped);
    const isServed = this.fleet.states().some(({ up }) => up);
    if (isQuiet && isServed) assert.deepEqual(reasons, [], "the gateway stays ready while one worker restarts");
    if (!isServed) assert.ok(reasons.length > 0, "the gateway is not ready without a serving worker");
  }
}

/** Runs everything that follows without time: promises within promises. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
