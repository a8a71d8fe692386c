/**
 * Which counts are worth asking an upstream for. A client sends 25 of them at once and waits for all, so
 * only so many go out at a time, and a route that could not count is left alone for a while: the estimate is always there.
 */
import type { Clock } from "../values/time.ts";

/** Counts at upstreams at one time, per process: they take places that model requests need more. */
export const NATIVE_COUNTS_MAX = 8;

/** How long a route that could not count is not asked again. */
export const COUNT_REST_MS = 30_000;

/** Routes remembered as ones to leave alone for a while; there are fewer unless a configuration is reloaded again and again. */
const PAUSED_MAX = 1_000;

/** What can be paused: a route, by the names that both sides of dispatch know. */
interface CountedRoute {
  readonly upstream: string;
  readonly upstreamModel: string;
}

export class NativeCounts {
  readonly #clock: Clock;
  readonly #pausedUntilMs = new Map<string, number>();
  #running = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes one of the places; `leave` must follow exactly once when it says true. */
  enter(): boolean {
    if (this.#running >= NATIVE_COUNTS_MAX) return false;
    this.#running += 1;
    return true;
  }

  leave(): void {
    this.#running -= 1;
  }

  mayAsk(route: CountedRoute): boolean {
    const untilMs = this.#pausedUntilMs.get(keyOf(route));
    return untilMs === undefined || this.#clock.monotonicMs() >= untilMs;
  }

  /** The route gave no count. */
  failed(route: CountedRoute): void {
    if (this.#pausedUntilMs.size >= PAUSED_MAX) this.#pausedUntilMs.clear();
    this.#pausedUntilMs.set(keyOf(route), this.#clock.monotonicMs() + COUNT_REST_MS);
  }
}

function keyOf({ upstream, upstreamModel }: CountedRoute): string {
  return JSON.stringify([upstream, upstreamModel]);
}
