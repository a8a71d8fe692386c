/**
 * A process of the simulated world: it lives, stops for a while, and dies. All that it does to the world goes through
 * `touch`, so that it can die between any two of its effects; code that still runs after its death changes nothing.
 */
import type { Clock } from "../../../src/values/time.ts";
import type { Scheduler } from "./scheduler.ts";

/** Thrown at the one effect that a process cannot wait for, a write; nobody is left to catch it. */
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
  /** The effect at which it dies, counted from its birth; undefined for none. */
  #diesAt: number | undefined;

  constructor(name: string, scheduler: Scheduler, onDeath: () => void) {
    this.name = name;
    this.#scheduler = scheduler;
    this.#onDeath = onDeath;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Before each effect on the world: false when there is nobody any more to have it. */
  touch(): boolean {
    if (!this.#alive) return false;
    this.#touches++;
    if (this.#touches === this.#diesAt) this.die();
    return this.#alive;
  }

  /** It dies at its `count`th effect from now on. */
  dieAfter(count: number): void {
    this.#diesAt = this.#touches + count;
  }

  die(): void {
    if (!this.#alive) return;
    this.#alive = false;
    this.#onDeath();
  }

  /** SIGSTOP for so long: what reaches it meanwhile waits. */
  stop(ms: number): void {
    this.#stoppedUntilMs = Math.max(this.#stoppedUntilMs, this.#scheduler.nowMs + ms);
  }

  /** Something reaches the process: at once, once it goes on again, or never. */
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

/** Never comes. */
export function never<T>(): Promise<T> {
  return new Promise<T>(() => {});
}

/** A machine's clock: monotonic time is true, the wall clock is off by `skewMs`, which may change. */
export class MachineClock {
  readonly #scheduler: Scheduler;
  skewMs = 0;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** As a process of this machine has it. */
  of(process: Process): Clock {
    return {
      monotonicMs: () => this.#scheduler.nowMs,
      wallMs: () => Math.trunc(this.#scheduler.nowMs + this.skewMs),
      after: (ms, task) => process.after(ms, task),
      afterTurn: (task) => process.after(0, task),
    };
  }
}
