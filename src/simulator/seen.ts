/** Requests that the simulator has received, for tests. */

/**
 * `complete`: answered to the last byte. `aborted`: the client disconnected before. `broken`: a programmed fault cut
 * it.
 */
export type AnswerOutcome = "complete" | "aborted" | "broken";

export interface SeenRequest {
  readonly method: string;
  /** Path and query as received. */
  readonly path: string;
  /** Name, value, name, value ... as received. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** The parsed body; undefined if it is not JSON. */
  readonly json: unknown;
  /** True once the client has disconnected before the answer's last byte. */
  readonly aborted: boolean;
  readonly finished: Promise<AnswerOutcome>;
}

/** The most requests in `requests`; the oldest are removed first. */
const REQUESTS_MAX = 1_000;

/** Records requests and lets tests wait for the n-th. */
export class SeenLog {
  readonly requests: SeenRequest[] = [];
  #count = 0;
  #waiters: { n: number; resolve: () => void }[] = [];

  add(seen: SeenRequest): void {
    this.requests.push(seen);
    if (this.requests.length > REQUESTS_MAX) this.requests.shift();
    this.#count += 1;
    for (const waiter of this.#waiters.filter(({ n }) => n <= this.#count)) waiter.resolve();
    this.#waiters = this.#waiters.filter(({ n }) => n > this.#count);
  }

  /** Number of requests since the start. */
  get count(): number {
    return this.#count;
  }

  /** Resolves once this many requests have arrived since the start. */
  waitFor(n: number): Promise<void> {
    if (this.#count >= n) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push({ n, resolve }));
  }
}
