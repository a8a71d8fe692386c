/**
 * Virtual time. All that waits for the world (a timer, a packet, a disk) is an event here; between two events the code
 * under test runs until no promise is ready. So order comes from this queue and from the order of microtasks only, both
 * of which a seed repeats.
 */

/** When the world begins: a fixed day, so that days in ledgers repeat too. */
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
  /** Events that have run. */
  steps = 0;

  /** True time, milliseconds since the epoch; no clock of the world need show it. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs `task` after `ms`; the result cancels it. Of two at one instant the one that was asked for first runs first. */
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

  /** The whole world stands still for so long: what was due meanwhile happens at once afterwards. */
  leap(ms: number): void {
    this.#nowMs += ms;
  }

  /** Runs everything that is due within `ms` from now on. */
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

/** The loop gets to its check phase only when no microtask is left. */
function noPromiseIsReady(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
