/**
 * How long one turn of the event loop worked, in this thread's own processor time: a machine that is busy with something
 * else does not count, so a limit on it means the same everywhere (docs/failure-model.md invariant 27).
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

  /** Ends the watch; milliseconds of the longest turn. */
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
