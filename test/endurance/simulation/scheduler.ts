/**
 * Virtual time. Everything that waits for the outside (a timer, a packet, a disk) is an event here. Between two events
 * the code under test runs until no promise is ready. So the order depends only on this queue and on the order of
 * microtasks, and a seed reproduces both.
 */

/** The start of virtual time: a fixed day, so that the days in ledgers are reproducible too. */
export const BEGIN_MS = Date.UTC(2026, 0, 2, 3, 4, 5);

interface Event {
  readonly atMs: number;
  readonly order: number;
  task: (() => void) | undefined;
}

export class Scheduler {
  #nowMs = BEGIN_MS;
  #order = 0;
  readonly #heap: Event[] = [];
  /** The number of events that have run. */
  steps = 0;

  /** Exact time, milliseconds since the epoch. The clocks of the simulation may differ from it. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /**
   * Runs `task` after `ms`; the result cancels it. Two tasks for the same time run in the order in which they were
   * scheduled.
   */
  after(ms: number, task: () => void): () => void {
    const event: Event = { atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, task };
    this.#push(event);
    return () => {
      event.task = undefined;
    };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Everything stands still for the given time. What was due meanwhile happens at once afterwards. */
  leap(ms: number): void {
    this.#nowMs += ms;
  }

  /** Runs everything that is due within `ms` from now. */
  async run(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    for (let event = this.#heap[0]; event && event.atMs <= untilMs; event = this.#heap[0]) {
      this.#pop();
      if (!event.task) continue;
      this.#nowMs = Math.max(this.#nowMs, event.atMs);
      this.steps++;
      event.task();
      await noPromiseIsReady();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(heap[parent] as Event, event)) break;
      heap[at] = heap[parent] as Event;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop() as Event;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) child++;
      if (isBefore(last, heap[child] as Event)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(left: Event, right: Event): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order);
}

/** The event loop reaches its check phase only when no microtask is left. */
function noPromiseIsReady(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
