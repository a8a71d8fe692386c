/** How long one upstream's models lately took to their first byte: a moving average, to compare slow and fast ones. */

/** How much the newest one counts. */
const NEWEST_SHARE = 0.2;

export class FirstByteTimes {
  /** By the model's name at the upstream, so bounded by the configuration. */
  readonly #meanMs = new Map<string, number>();

  add(model: string, ms: number): void {
    const before = this.#meanMs.get(model);
    this.#meanMs.set(model, before === undefined ? ms : before + NEWEST_SHARE * (ms - before));
  }

  /** In milliseconds; undefined while none has been seen. */
  meanMs(model: string): number | undefined {
    return this.#meanMs.get(model);
  }
}
