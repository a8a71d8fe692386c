/**
 * Measures the longest turn of the event loop in this thread's own CPU time. Other load of the machine does not count,
 * so a limit means the same everywhere (docs/failure-model.md invariant 27).
 */
export class Turns {
  #longestUs = 0;
  #last = process.threadCpuUsage();
  #running = true;

  constructor() {
    const turn = (): void => {
      if (!this.#running) return;
      this.#look();
      setImmediate(turn);
    };
    setImmediate(turn);
  }

  /** Stops measuring. @returns the milliseconds of the longest turn. */
  stop(): number {
    this.#look();
    this.#running = false;
    return this.#longestUs / 1_000;
  }

  #look(): void {
    const now = process.threadCpuUsage();
    const spentUs = now.user + now.system - this.#last.user - this.#last.system;
    this.#last = now;
    if (spentUs > this.#longestUs) this.#longestUs = spentUs;
  }
}
