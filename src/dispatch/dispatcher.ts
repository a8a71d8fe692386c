/**
 * The attempt loop: picks routes in order, one attempt at a time, and fails over while nothing has been accepted
 * (DESIGN.md section 3). What happens once per request is here; what happens once per attempt is in `attempt.ts`.
 */
import type { Route } from "../values/catalog.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { UpstreamSettings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import type { Answered, AttemptRecord, DispatchAsk, DispatchWarning, Encoded, Unanswered } from "./ask.ts";
import { type AttemptResult, runAttempt } from "./attempt.ts";
import { type Failure, refusalOf, rowOf } from "./failure.ts";
import { RetryBudget } from "./retry-budget.ts";
import { orderRoutes } from "./route-order.ts";
import { sameUpstream, Upstream } from "./upstream.ts";

/** Tries per request, the first one included. */
const ATTEMPTS_MAX = 2;

/** What a client waits when every upstream of its model is full. */
const FULL_RETRY_AFTER_S = 1;

export interface DispatcherOptions {
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
  readonly clock: Clock;
  onWarning(warning: DispatchWarning): void;
  /** A number in [0, 1). */
  random(): number;
}

export interface Dispatcher {
  /**
   * Finds an upstream that answers.
   * @returns the answer, or the refusal to send; rejects only on a defect of the asker's encoder or inspector.
   */
  run<T>(ask: DispatchAsk<T>): Promise<Answered<T> | Unanswered>;
  /**
   * Takes new settings: unchanged upstreams keep their connections, the others get new ones, and what runs on the old
   * finishes there.
   * @throws when the settings cannot be taken (an unreadable CA file); then nothing has changed.
   */
  replace(upstreams: ReadonlyMap<string, UpstreamSettings>): void;
  /** Attempts running now by upstream name, bodies still flowing and upstreams already replaced included. */
  inFlight(): ReadonlyMap<string, number>;
  /** Lets running attempts finish, then closes all connections. */
  close(): Promise<void>;
}

/** Makes the dispatcher of one process. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new RoutingDispatcher(options);
}

interface Choice<T> {
  readonly route: Route;
  readonly upstream: Upstream;
  readonly encoded: Encoded<T>;
}

class RoutingDispatcher implements Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #budget = new RetryBudget();
  readonly #retired = new Set<Upstream>();
  #upstreams: ReadonlyMap<string, Upstream>;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#upstreams = open(options.upstreams, new Map());
  }

  async run<T>(ask: DispatchAsk<T>): Promise<Answered<T> | Unanswered> {
    const attempts: AttemptRecord[] = [];
    if (ask.signal.aborted) return gone(attempts);
    const routes = orderRoutes(ask.routes, this.#options.random);
    const first = this.#choose(ask, routes);
    if (isRefusal(first)) return refused(first, attempts);
    let choice: Choice<T> = first;
    for (;;) {
      const result = await this.#attempt(ask, choice, attempts.length > 0);
      attempts.push(result.record);
      if (result.kind === "answered") return answered(choice, result, attempts);
      if (result.kind === "client_gone" || ask.signal.aborted) return gone(attempts);
      this.#warn(ask, choice, result.failure);
      const next: Choice<T> | undefined = this.#chooseNext(ask, routes, choice, result.failure, attempts.length);
      if (next === undefined) return refused(refusalOf(result.failure), attempts);
      choice = next;
    }
  }

  replace(upstreams: ReadonlyMap<string, UpstreamSettings>): void {
    const before = this.#upstreams;
    this.#upstreams = open(upstreams, before);
    for (const [name, upstream] of before) {
      if (this.#upstreams.get(name) !== upstream) void this.#retire(upstream);
    }
  }

  inFlight(): ReadonlyMap<string, number> {
    const counts = new Map([...this.#upstreams].map(([name, upstream]) => [name, upstream.running]));
    for (const { settings, running } of this.#retired) {
      if (running > 0) counts.set(settings.name, (counts.get(settings.name) ?? 0) + running);
    }
    return counts;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#upstreams.values(), ...this.#retired].map((upstream) => upstream.close()));
  }

  async #retire(upstream: Upstream): Promise<void> {
    this.#retired.add(upstream);
    await upstream.close();
    this.#retired.delete(upstream);
  }

  async #attempt<T>(ask: DispatchAsk<T>, choice: Choice<T>, again: boolean): Promise<AttemptResult> {
    try {
      return await runAttempt(ask, choice.route, choice.encoded, choice.upstream, this.#options.clock);
    } finally {
      if (again) this.#budget.giveBack();
    }
  }

  /** The first route that has room and can carry the request; else why there is none. */
  #choose<T>(ask: DispatchAsk<T>, routes: readonly Route[]): Choice<T> | Refusal {
    let refusedBy: Refusal | undefined;
    let full = false;
    for (const route of routes) {
      const upstream = this.#upstreams.get(route.upstream);
      if (!upstream) continue;
      if (!upstream.hasRoom()) {
        full = true;
        continue;
      }
      const encoded = ask.encodeFor(route);
      if (!isRefusal(encoded)) return { route, upstream, encoded };
      refusedBy ??= encoded;
    }
    if (full) return refusal("upstream_rate_limit", {}, { retryAfterS: FULL_RETRY_AFTER_S });
    return refusedBy ?? refusal("upstream_unavailable");
  }

  /** Where to go after a failure, with a place in the retry budget taken; undefined when the failure is the answer. */
  #chooseNext<T>(
    ask: DispatchAsk<T>,
    routes: readonly Route[],
    tried: Choice<T>,
    failed: Failure,
    attempts: number,
  ): Choice<T> | undefined {
    if (attempts >= ATTEMPTS_MAX) return undefined;
    if (this.#options.clock.monotonicMs() >= ask.deadlineMs) return undefined;
    const next = this.#choose(ask, routesAfter(routes, tried.route, failed));
    if (isRefusal(next)) return undefined;
    return this.#budget.take(this.#inFlightTotal()) ? next : undefined;
  }

  #inFlightTotal(): number {
    let total = 0;
    for (const upstream of this.#upstreams.values()) total += upstream.running;
    for (const upstream of this.#retired) total += upstream.running;
    return total;
  }

  #warn<T>(ask: DispatchAsk<T>, choice: Choice<T>, failed: Failure): void {
    const kind = rowOf(failed).warning;
    if (kind === undefined) return;
    // A 404 or 405 of a side endpoint says that the upstream has none, not that it was asked for a wrong model.
    if (ask.pathSuffix !== undefined && (kind === "model_not_found" || kind === "unexpected_status")) return;
    const { upstream, upstreamModel } = choice.route;
    this.#options.onWarning({ kind, upstream, model: upstreamModel, status: failed.status, reason: failed.reason });
  }
}

/** The routes that a failure leaves open, best first. */
function routesAfter(routes: readonly Route[], tried: Route, failed: Failure): Route[] {
  const { next } = rowOf(failed);
  if (next === "nowhere") return [];
  const elsewhere = routes.filter((route) => route.upstream !== tried.upstream);
  const beside = routes.filter((route) => route.upstream === tried.upstream && route !== tried);
  if (next === "other_upstream") return elsewhere;
  if (next === "other_route") return routes.filter((route) => route !== tried);
  // The same upstream is only asked again when there is no other.
  return elsewhere.length > 0 ? elsewhere : [...beside, tried];
}

function open(
  wanted: ReadonlyMap<string, UpstreamSettings>,
  existing: ReadonlyMap<string, Upstream>,
): ReadonlyMap<string, Upstream> {
  return new Map(
    [...wanted].map(([name, settings]) => {
      const kept = existing.get(name);
      return [name, kept && sameUpstream(kept.settings, settings) ? kept : new Upstream(settings)];
    }),
  );
}

function answered<T>(
  { route, encoded }: Choice<T>,
  { status, headers, body }: Extract<AttemptResult, { kind: "answered" }>,
  attempts: readonly AttemptRecord[],
): Answered<T> {
  return { answered: true, route, token: encoded.token, status, headers, body, attempts };
}

function refused(refusal: Refusal, attempts: readonly AttemptRecord[]): Unanswered {
  return { answered: false, clientGone: false, refusal, attempts };
}

function gone(attempts: readonly AttemptRecord[]): Unanswered {
  return { answered: false, clientGone: true, refusal: undefined, attempts };
}
