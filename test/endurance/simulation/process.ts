/**
 * A process of the simulation: it lives, stops for a while, and dies. All its effects go through `touch`, so that it
 * can die between any two of them. Code that still runs after its death changes nothing.
 */
import type { Clock } from "../../../src/values/time.ts";
import type { Scheduler } from "./scheduler.ts";

/** Thrown by a write, the one effect that a process cannot wait for. No code catches it. */
export class DeadError extends Error {
  override readonly name = "DeadError";
}

export class Process {
  readonly name: string;
  readonly #scheduler: Scheduler;
  readonly #onDeath: () => void;
  #alive = true;
  #touches = 0;
  #stoppedUntilMs = 0;
  /** The number of the effect at which it dies, counted from its start; undefined for none. */
  #diesAt: number | undefined;

  constructor(name: string, scheduler: Scheduler, onDeath: () => void) {
    this.name = name;
    this.#scheduler = scheduler;
    this.#onDeath = onDeath;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Called before each effect. Returns false if the process is dead. */
  touch(): boolean {
    if (!this.#alive) return false;
    this.#touches++;
    if (this.#touches === this.#diesAt) this.die();
    return this.#alive;
  }

  /** Makes it die at its `count`th effect from now. */
  dieAfter(count: number): void {
    this.#diesAt = this.#touches + count;
  }

  die(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#onDeath();
  }

  /** SIGSTOP for the given time. What arrives meanwhile waits. */
  stop(ms: number): void {
    this.#stoppedUntilMs = Math.max(this.#stoppedUntilMs, this.#scheduler.nowMs + ms);
  }

  /** Delivers a task to the process: at once, when it continues, or never if it is dead. */
  receive(task: () => void): void {
    if (!this.#alive) return;
    const waitMs = this.#stoppedUntilMs - this.#scheduler.nowMs;
    if (waitMs > 0) this.#scheduler.after(waitMs, () => this.receive(task));
    else task();
  }

  after(ms: number, task: () => void): () => void {
    return this.#scheduler.after(ms, () => this.receive(task));
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }
}

/** A promise that never resolves. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

/** A machine's clock: monotonic time is exact, and the wall clock is off by `skewMs`, which may change. */
export class MachineClock {
  readonly #scheduler: Scheduler;
  skewMs = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** The clock as a process of this machine sees it. */
  of(process: Process): Clock {
    return {
      monotonicMs: () => this.#scheduler.nowMs,
      wallMs: () => Math.trunc(this.#scheduler.nowMs + this.skewMs),
      after: (ms, task) => process.after(ms, task),
      afterTurn: (task) => process.after(0, task),
    };
  }
}
