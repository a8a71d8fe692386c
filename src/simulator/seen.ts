/** What arrived at the simulator, for tests to look at. */

/** `complete`: answered to the last byte. `aborted`: the client left before. `broken`: a fault of ours cut it. */
export type AnswerOutcome = "complete" | "aborted" | "broken";

export interface SeenRequest {
  readonly method: string;
  /** Path and query as they came. */
  readonly path: string;
  /** Name, value, name, value ... as they came. */
  readonly headers: readonly string[];
  readonly body: Buffer;
  /** The parsed body, undefined when it is not JSON. */
  readonly json: unknown;
  /** True once the client left before the answer's last byte. */
  readonly aborted: boolean;
  readonly finished: Promise<AnswerOutcome>;
}

/** Most requests that `requests` remembers; the oldest go first. */
const REQUESTS_MAX = 1_000;

/** Remembers requests and lets tests wait for the n-th. */
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

  /** How many requests arrived since the start. */
  get count(): number {
    return this.#count;
  }

  /** Resolves when so many requests have arrived since the start. */
  waitFor(n: number): Promise<void> {
    if (this.#count >= n) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push({ n, resolve }));
  }
}
