/**
 * Keeps retries from multiplying an outage: at any time at most a share of the running requests are retries.
 */

/** Share of the requests in flight that may be retries at once. */
const RETRY_SHARE = 0.2;

/** Retries that may run at once however few requests there are. */
const RETRIES_MIN = 3;

export class RetryBudget {
  #running = 0;

  /**
   * Takes a slot for one retry.
   * @param inFlight attempts running now, over all upstreams.
   * @returns false when the budget is used up; else `giveBack` must follow once.
   */
  take(inFlight: number): boolean {
    if (this.#running >= Math.max(RETRIES_MIN, Math.floor(inFlight * RETRY_SHARE))) return false;
    this.#running += 1;
    return true;
  }

  giveBack(): void {
    this.#running -= 1;
  }
}
