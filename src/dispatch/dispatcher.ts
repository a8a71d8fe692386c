/**
 * The attempt loop: picks routes in order, makes one attempt at a time, and fails over until an answer is accepted.
 * What happens once per request is here; what happens once per attempt is in `attempt.ts`.
 */

import { withoutRepeats } from "../telemetry/log.ts";
import type { Route } from "../values/catalog.ts";
import { TransientList } from "../values/collections/transient.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { UpstreamSettings } from "../values/settings.ts";
import { type Clock, Cohort } from "../values/time.ts";
import type { Answered, AttemptRecord, DispatchAsk, DispatchWarning, Unanswered } from "./ask.ts";
import { type AttemptResult, runAttempt, type UndecidedAttempt } from "./attempt.ts";
import {
  Affinity,
  begun,
  type Candidate,
  type Choice,
  type Chosen,
  choose,
  chooseNext,
  drawOf,
  isEjected,
  orderRoutes,
  preferUpstream,
  release,
} from "./choose.ts";
import { type Failure, refusalOf, rowOf } from "./failure.ts";
import { waitForSlot } from "./slot-wait.ts";
import type { Ejection } from "./upstream/health.ts";
import { UpstreamPool, type UpstreamReport } from "./upstream/pool.ts";

/** Attempts per request, including the first. */
const ATTEMPTS_MAX = 2;

export interface DispatcherOptions {
  readonly upstreams: ReadonlyMap<string, UpstreamSettings>;
  readonly clock: Clock;
  onWarning(warning: DispatchWarning): void;
  /** An upstream was ejected, or has returned. */
  onEjected?(upstream: string, ejection: Ejection): void;
  onReturned?(upstream: string): void;
  /** A request has waited for a slot, successfully or not. */
  onWaited?(upstream: string, waitedMs: number): void;
  /** A number in [0, 1). */
  random(): number;
}

export interface Dispatcher {
  /**
   * Finds an upstream that answers.
   * @returns the answer, or the refusal to send; rejects only on a defect of the caller's encoder or inspector.
   */
  run<T>(ask: DispatchAsk<T>): Promise<Answered<T> | Unanswered>;
  /**
   * Applies new settings: unchanged upstreams keep their connections, the others get new ones, and running attempts
   * finish on the old ones.
   * @throws if the settings cannot be used (an invalid certificate); then nothing has changed.
   */
  replace(upstreams: ReadonlyMap<string, UpstreamSettings>): void;
  /** Running attempts by upstream name, including bodies that are still flowing and replaced upstreams. */
  inFlight(): ReadonlyMap<string, number>;
  /** The state of every configured upstream. */
  report(): readonly UpstreamReport[];
  /**
   * Refuses what has no answer yet, and every later request, with `draining`. Streams that have begun go on; the caller
   * ends them.
   */
  stop(): void;
  /** Lets running attempts finish, then closes all connections. */
  close(): Promise<void>;
}

/** Creates the dispatcher of one process. */
export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new RoutingDispatcher(options);
}

class RoutingDispatcher implements Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #budget = new RetryBudget();
  readonly #affinity: Affinity;
  readonly #attemptParts: Parameters<typeof runAttempt>[2];
  readonly #undecided = new TransientList<UndecidedAttempt>();
  readonly #pool: UpstreamPool;
  #isStopped = false;
  /** Rate-limited warnings by upstream, kind and model: without it, each request would repeat them. */
  readonly #warned = new Map<string, (reason: string) => void>();

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#affinity = new Affinity(options.clock);
    this.#attemptParts = {
      clock: options.clock,
      cohort: new Cohort(options.clock),
      undecided: this.#undecided,
    };
    this.#pool = new UpstreamPool(options.upstreams, {
      clock: options.clock,
      random: options.random,
      onEjected: (upstream, ejection) => options.onEjected?.(upstream, ejection),
      onReturned: (upstream) => options.onReturned?.(upstream),
    });
  }

  run<T>(ask: DispatchAsk<T>): Promise<Answered<T> | Unanswered> {
    return ask.readsInTurn === "by_client" ? this.#runInTurn(ask) : this.#run(ask);
  }

  /**
   * Runs a client's question about what an upstream keeps once it may be asked there. Waiting takes no time from the
   * answer: the question may be a change, which must not be cut while the server makes it.
   */
  async #runInTurn<T>(ask: DispatchAsk<T>): Promise<Answered<T> | Unanswered> {
    const { clock } = this.#options;
    const { deadlineMs, readsFor, signal } = ask;
    const leftMs = Math.max(0, deadlineMs - clock.monotonicMs());
    const find = () => this.#pool.get(ask.routes[0]?.upstream ?? "");
    // A signal that has aborted reports nothing any more: the question would wait for its turn without its client.
    for (let upstream = find(); upstream && !signal.aborted && !this.#isStopped; upstream = find()) {
      const come = Promise.withResolvers<"now" | "again" | "late">();
      const again = () => come.resolve("again");
      const turn = upstream.askingTurns.take(() => come.resolve("now"), readsFor, again);
      const cancel = clock.after(Math.max(0, deadlineMs - clock.monotonicMs()), () => come.resolve("late"));
      signal.addEventListener("abort", again);
      try {
        const waited = turn.isNow ? "now" : await come.promise;
        if (waited === "now") return await this.#run({ ...ask, deadlineMs: clock.monotonicMs() + leftMs });
        if (waited === "late") return refused(allFull(upstream.slots.retryAfterS()), []);
      } finally {
        turn.end();
        cancel();
        signal.removeEventListener("abort", again);
      }
    }
    return this.#run(ask);
  }

  async #run<T>(ask: DispatchAsk<T>): Promise<Answered<T> | Unanswered> {
    const attempts: AttemptRecord[] = [];
    if (ask.signal.aborted) return gone(attempts);
    if (this.#isStopped) return refused(refusal("draining"), attempts);
    const routes = this.#ordered(ask);
    const chosen = choose(ask, routes, this.#pool);
    const first = chosen.kind === "full" ? await this.#waitedFor(ask, routes, chosen.candidates) : resultOf(chosen);
    if (first === "gone") return gone(attempts);
    if (isRefusal(first)) return refused(first, attempts);
    if (ask.signal.aborted) {
      release(first);
      return gone(attempts);
    }
    let choice: Choice<T> = first;
    let inBudget = false;
    for (;;) {
      if (this.#isStopped) {
        release(choice);
        return refused(refusal("draining"), attempts);
      }
      const result: AttemptResult = await this.#attempt(ask, choice, inBudget);
      attempts.push(result.record);
      if (result.kind === "answered") return this.#answered(ask, choice, result, attempts);
      if (result.kind === "client_gone" || ask.signal.aborted) return gone(attempts);
      this.#warn(ask, choice, result.failure);
      if (this.#isStopped) return refused(refusalOf(result.failure), attempts);
      const isForReasoning: boolean = rowOf(result.failure).next === "without_reasoning";
      const next = isForReasoning
        ? await this.#withoutReasoning(ask, choice.route, attempts.length)
        : this.#next(ask, routes, choice.route, result.failure, attempts.length);
      if (next === "gone") return gone(attempts);
      if (next === undefined || isRefusal(next)) return refused(refusalOf(result.failure), attempts);
      choice = next;
      inBudget = !isForReasoning;
    }
  }

  replace(upstreams: ReadonlyMap<string, UpstreamSettings>): void {
    this.#warned.clear();
    this.#pool.replace(upstreams);
  }

  inFlight(): ReadonlyMap<string, number> {
    return this.#pool.inFlight();
  }

  report(): readonly UpstreamReport[] {
    return this.#pool.report();
  }

  stop(): void {
    this.#isStopped = true;
    // First, so that the slots of the others go to nobody.
    this.#pool.dissolveQueues();
    for (const attempt of this.#undecided.values()) attempt.stop();
  }

  async close(): Promise<void> {
    await this.#pool.close();
  }

  /**
   * The order is random; for a conversation it is derived from its hash. The upstream that is known to have run a part
   * of the request comes first, or else the one that answered the conversation last.
   */
  #ordered<T>({ routes, conversation, prefers }: DispatchAsk<T>): readonly Route[] {
    if (routes.length < 2) return routes;
    const ordered =
      conversation === undefined
        ? orderRoutes(routes, this.#options.random)
        : orderRoutes(routes, (route) => drawOf(conversation, route));
    const wanted = prefers ?? (conversation === undefined ? undefined : this.#affinity.recall(conversation));
    return wanted === undefined ? ordered : preferUpstream(ordered, wanted, this.#pool);
  }

  /** Waits until a slot at one of the routes is taken. */
  async #waitedFor<T>(
    ask: DispatchAsk<T>,
    routes: readonly Route[],
    full: readonly Candidate<T>[],
  ): Promise<Choice<T> | Refusal | "gone"> {
    const { clock, onWaited } = this.#options;
    const startedMs = clock.monotonicMs();
    const found = await this.#queued(ask, routes, full, startedMs);
    const { route } = found === "gone" || isRefusal(found) ? (full[0] as Candidate<T>) : found;
    if (ask.owner) onWaited?.(route.upstream, clock.monotonicMs() - startedMs);
    return found;
  }

  /**
   * If an ejection or a reload dissolves the queue, the request chooses again, and its waiting time continues. If the
   * gateway ends, it is refused.
   */
  async #queued<T>(
    ask: DispatchAsk<T>,
    routes: readonly Route[],
    full: readonly Candidate<T>[],
    startedMs: number,
  ): Promise<Choice<T> | Refusal | "gone"> {
    const { owner, signal, deadlineMs } = ask;
    for (let candidates = full; ; ) {
      const queues = [...new Set(candidates.map(({ upstream }) => upstream.slots))];
      if (owner === undefined) return allFull(Math.min(...queues.map((slots) => slots.retryAfterS())));
      const untilMs = Math.min(startedMs + Math.max(...queues.map((slots) => slots.waitMs)), deadlineMs);
      const waited = await waitForSlot(queues, { owner, untilMs, signal, clock: this.#options.clock });
      if (waited.kind === "gone") return "gone";
      if (waited.kind === "refused") return allFull(waited.retryAfterS);
      if (waited.kind === "granted") {
        const candidate = candidates.find(({ upstream }) => upstream.slots === waited.at) as Candidate<T>;
        if (!isEjected(candidate)) return begun(candidate, waited.slot);
        // The slot was released because the upstream's last failure has ejected it.
        waited.slot.release();
      }
      if (this.#isStopped) return refusal("draining");
      const chosen = choose(ask, routes, this.#pool);
      if (chosen.kind !== "full") return resultOf(chosen);
      candidates = chosen.candidates;
    }
  }

  #attempt<T>(ask: DispatchAsk<T>, choice: Choice<T>, inBudget: boolean): Promise<AttemptResult> {
    const result = runAttempt(ask, choice, this.#attemptParts);
    // Only retries count in the budget: one more promise per request costs 0.3 us.
    return inBudget ? result.finally(() => this.#budget.release()) : result;
  }

  /** Where to go after a failure, with a slot in the retry budget taken; undefined if the failure is the answer. */
  #next<T>(
    ask: DispatchAsk<T>,
    routes: readonly Route[],
    tried: Route,
    failed: Failure,
    attempts: number,
  ): Choice<T> | undefined {
    if (attempts >= ATTEMPTS_MAX) return undefined;
    if (this.#options.clock.monotonicMs() >= ask.deadlineMs) return undefined;
    if (!this.#budget.take(this.#pool.inFlightTotal())) return undefined;
    const next = chooseNext(ask, routes, this.#pool, tried, failed);
    if (next === undefined) this.#budget.release();
    return next;
  }

  /**
   * Tries the same route once more, without the reasoning that its upstream has refused: another upstream would most
   * likely refuse it as well, and has no warm cache. This is not a retry of something broken, so the budget does not
   * count it. It waits for a slot like a new request, because otherwise the agent's session would end here.
   * @returns undefined, or a refusal, if the upstream's own refusal is the answer.
   */
  async #withoutReasoning<T>(
    ask: DispatchAsk<T>,
    route: Route,
    attempts: number,
  ): Promise<Choice<T> | Refusal | "gone" | undefined> {
    if (attempts >= ATTEMPTS_MAX || this.#options.clock.monotonicMs() >= ask.deadlineMs) return undefined;
    const encoded = ask.withoutReasoning?.(route);
    if (encoded === undefined || isRefusal(encoded)) return undefined;
    const less: DispatchAsk<T> = { ...ask, encodeFor: () => encoded };
    const chosen = choose(less, [route], this.#pool);
    return chosen.kind === "full" ? this.#waitedFor(less, [route], chosen.candidates) : resultOf(chosen);
  }

  #answered<T>(
    { conversation }: DispatchAsk<T>,
    { route, encoded }: Choice<T>,
    { status, headers, body }: Extract<AttemptResult, { kind: "answered" }>,
    attempts: readonly AttemptRecord[],
  ): Answered<T> {
    if (conversation !== undefined) this.#affinity.remember(conversation, route.upstream);
    return { answered: true, route, token: encoded.token, status, headers, body, attempts };
  }

  #warn<T>(ask: DispatchAsk<T>, choice: Choice<T>, failed: Failure): void {
    const kind = rowOf(failed).warning;
    if (kind === undefined) return;
    // A 404 or 405 of a side endpoint means that the upstream does not have it, not that the model name is wrong.
    if (ask.pathSuffix !== undefined && (kind === "model_not_found" || kind === "unexpected_status")) return;
    const { upstream, upstreamModel: model } = choice.route;
    const { status } = failed;
    const { asked } = choice.upstream;
    const about = JSON.stringify([upstream, kind, model, status]);
    const say =
      this.#warned.get(about) ??
      withoutRepeats(this.#options.clock, (reason) =>
        this.#options.onWarning({ kind, upstream, model, status, reason, asked }),
      );
    this.#warned.set(about, say);
    say(failed.reason);
  }
}

function resultOf<T>(chosen: Exclude<Chosen<T>, { kind: "full" }>): Choice<T> | Refusal {
  return chosen.kind === "chosen" ? chosen.choice : chosen.refusal;
}

function allFull(retryAfterS: number): Refusal {
  return refusal("upstream_rate_limit", {}, { retryAfterS });
}

function refused(refusal: Refusal, attempts: readonly AttemptRecord[]): Unanswered {
  return { answered: false, clientGone: false, refusal, attempts };
}

function gone(attempts: readonly AttemptRecord[]): Unanswered {
  return { answered: false, clientGone: true, refusal: undefined, attempts };
}

/* Keeps retries from multiplying an outage: at any time, at most a share of the running requests are retries. */

/** Share of the requests in flight that may be retries. */
const RETRY_SHARE = 0.2;

/** Concurrent retries that are always allowed. */
const RETRIES_MIN = 3;

export class RetryBudget {
  #running = 0;

  /**
   * Takes a slot for one retry.
   * @param inFlight attempts running now, over all upstreams.
   * @returns false if the budget is used up; else `release` must follow once.
   */
  take(inFlight: number): boolean {
    if (this.#running >= Math.max(RETRIES_MIN, Math.floor(inFlight * RETRY_SHARE))) return false;
    this.#running += 1;
    return true;
  }

  release(): void {
    this.#running -= 1;
  }
}
