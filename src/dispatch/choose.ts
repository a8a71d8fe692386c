/**
 * Picks the first of the ordered routes that is healthy, has a free slot and can carry the request. Ejected upstreams
 * are used when nothing else is left, so that a model never loses its last route to our own judgment.
 */
import { hash } from "node:crypto";
import type { Route } from "../values/catalog.ts";
import { createRecent, type Recent } from "../values/collections/recent.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { Clock } from "../values/time.ts";
import type { AttemptRequest, DispatchAsk } from "./ask.ts";
import { type Failure, rowOf } from "./failure.ts";
import type { UpstreamPool } from "./upstream/pool.ts";
import { NO_SLOT, type Slot } from "./upstream/slots.ts";
import type { Upstream } from "./upstream/upstream.ts";

/** A route that can carry the request. */
export interface Candidate<T> {
  readonly route: Route;
  readonly upstream: Upstream;
  readonly encoded: AttemptRequest<T>;
}

/** A route with a slot taken and its attempt begun: the caller must run it, or `release` it. */
export interface Choice<T> extends Candidate<T> {
  readonly slot: Slot;
  /** Whether this attempt is the probe that decides on the upstream's return. */
  readonly probe: boolean;
}

export type Chosen<T> =
  | { readonly kind: "chosen"; readonly choice: Choice<T> }
  /** All upstreams that could carry the request are full. */
  | { readonly kind: "full"; readonly candidates: readonly Candidate<T>[] }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/** Chooses for the first attempt of a request. */
export function choose<T>(ask: DispatchAsk<T>, routes: readonly Route[], pool: UpstreamPool): Chosen<T> {
  const well = wellAmong(routes, pool);
  const found = firstWithRoom(ask, well, pool);
  if (found.kind !== "refused" || well.length === routes.length) return found;
  const last = firstWithRoom(ask, soonestFirst(routes, well, pool), pool);
  // A healthy route that cannot carry the request explains more than an upstream that is down.
  return last.kind === "refused" && well.length > 0 ? found : last;
}

/**
 * Chooses again after a failure; undefined if the failure is the answer. A request that has failed once does not queue.
 * If nothing else is left, an upstream that is ejected only by our own judgment is tried: it never costs a possible
 * answer.
 */
export function chooseNext<T>(
  ask: DispatchAsk<T>,
  routes: readonly Route[],
  pool: UpstreamPool,
  tried: Route,
  failed: Failure,
): Choice<T> | undefined {
  const well = wellAmong(routes, pool);
  const found = firstWithRoom(ask, routesAfter(well, tried, failed), pool);
  if (found.kind === "chosen") return found.choice;
  const doubted = soonestFirst(routes, well, pool).filter(
    ({ upstream, upstreamModel }) =>
      upstream !== tried.upstream && pool.get(upstream)?.health.isOnlyDoubted(upstreamModel),
  );
  if (doubted.length === 0) return undefined;
  const last = firstWithRoom(ask, routesAfter(doubted, tried, failed), pool);
  return last.kind === "chosen" ? last.choice : undefined;
}

/** Begins the attempt at a candidate whose slot was granted. */
export function begun<T>(candidate: Candidate<T>, slot: Slot): Choice<T> {
  const { route, upstream, encoded } = candidate;
  return { route, upstream, encoded, slot, probe: upstream.health.begin(route.upstreamModel) };
}

/** Whether a candidate's upstream was ejected after it became one. */
export function isEjected<T>({ route, upstream }: Candidate<T>): boolean {
  return upstream.health.status(route.upstreamModel) === "ejected";
}

/** Releases a choice that was not run. */
export function release<T>({ route, upstream, slot, probe }: Choice<T>): void {
  slot.release();
  upstream.health.report({ kind: "none", model: route.upstreamModel, retryAfterS: undefined, startedAtMs: 0, probe });
}

/** Usually all are healthy, and no list is created. */
function wellAmong(routes: readonly Route[], pool: UpstreamPool): readonly Route[] {
  return routes.every((route) => isWell(route, pool)) ? routes : routes.filter((route) => isWell(route, pool));
}

function isWell({ upstream, upstreamModel }: Route, pool: UpstreamPool): boolean {
  return pool.get(upstream)?.health.status(upstreamModel) !== "ejected";
}

function soonestFirst(routes: readonly Route[], well: readonly Route[], pool: UpstreamPool): Route[] {
  const restMs = ({ upstream, upstreamModel }: Route) => pool.get(upstream)?.health.restMs(upstreamModel) ?? 0;
  return routes.filter((route) => !well.includes(route)).sort((left, right) => restMs(left) - restMs(right));
}

function firstWithRoom<T>(ask: DispatchAsk<T>, routes: readonly Route[], pool: UpstreamPool): Chosen<T> {
  let refusedBy: Refusal | undefined;
  let full: Route[] | undefined;
  for (const route of routes) {
    const upstream = upstreamOf(route, pool);
    if (!upstream) continue;
    if (!ask.needsNoSlot && !upstream.slots.hasRoom()) {
      full ??= [];
      full.push(route);
      continue;
    }
    const encoded = ask.encodeFor(route);
    if (isRefusal(encoded)) refusedBy ??= encoded;
    else if (ask.needsNoSlot)
      return { kind: "chosen", choice: { route, upstream, encoded, slot: NO_SLOT, probe: false } };
    else return { kind: "chosen", choice: begun({ route, upstream, encoded }, upstream.slots.take()) };
  }
  // A request that none of the full routes can carry is refused at once, not after a wait.
  const candidates: Candidate<T>[] = [];
  for (const route of full ?? []) {
    const encoded = ask.encodeFor(route);
    if (isRefusal(encoded)) refusedBy ??= encoded;
    else candidates.push({ route, upstream: pool.get(route.upstream) as Upstream, encoded });
  }
  if (candidates.length > 0) return { kind: "full", candidates };
  return { kind: "refused", refusal: refusedBy ?? refusal("upstream_unavailable") };
}

/**
 * The upstream of a route; undefined if a reload has removed it since the request was admitted, or has given its name
 * to a server of another protocol, which would get a body that it cannot read.
 */
function upstreamOf(route: Route, pool: UpstreamPool): Upstream | undefined {
  const upstream = pool.get(route.upstream);
  return upstream?.settings.protocol === route.protocol ? upstream : undefined;
}

/** The routes that remain after a failure, best first. */
function routesAfter(routes: readonly Route[], tried: Route, failed: Failure): readonly Route[] {
  const { next } = rowOf(failed);
  if (next === "nowhere" || next === "without_reasoning") return [];
  const elsewhere = routes.filter((route) => route.upstream !== tried.upstream);
  if (next === "other_upstream") return elsewhere;
  if (next === "other_route") return routes.filter((route) => route !== tried);
  // The same upstream is tried again only if there is no other, and if it has not asked for a pause.
  const beside = routes.filter((route) => route.upstream === tried.upstream && route !== tried);
  return elsewhere.length > 0 ? elsewhere : [...beside, ...((failed.retryAfterS ?? 0) === 0 ? [tried] : [])];
}

/* The order in which a model's routes are tried, before free slots are considered. */

/**
 * Orders by priority (lower first); equal priorities by weighted random order without replacement.
 * @param draw gives a number in [0, 1); called once per route.
 */
export function orderRoutes(routes: readonly Route[], draw: (route: Route) => number): readonly Route[] {
  if (routes.length < 2) return routes;
  // Efraimidis and Spirakis 2006: sorting by ln(u) / weight draws without replacement in proportion to the weights.
  return routes
    .map((route) => ({ route, rank: Math.log(1 - draw(route)) / Math.max(route.weight, Number.MIN_VALUE) }))
    .sort((left, right) => left.route.priority - right.route.priority || right.rank - left.rank)
    .map(({ route }) => route);
}

/** An upstream with a first byte within this time never counts as slow. */
const SLOW_MS_MIN = 5_000;
/** Above it, an upstream is slow if it is this many times slower than another one. */
const SLOW_FACTOR = 3;

/**
 * Moves the upstream of a conversation to the front: of its own priority, or of all routes if only its account can read
 * what the conversation carries (`account_bound_thinking`). A slow upstream is not preferred while another of its
 * priority is fast; otherwise it would keep its conversations forever.
 */
export function preferUpstream(routes: readonly Route[], name: string, pool: UpstreamPool): readonly Route[] {
  const at = routes.findIndex((route) => route.upstream === name);
  const wanted = routes[at];
  if (wanted === undefined || at === 0)
    return wanted && isSlow(wanted, routes, pool) ? demoted(wanted, routes) : routes;
  const rest = routes.filter((route) => route !== wanted);
  if (wanted.capabilities.accountBoundThinking) return [wanted, ...rest];
  if (isSlow(wanted, routes, pool)) return demoted(wanted, routes);
  const before = rest.filter((route) => route.priority < wanted.priority);
  return [...before, wanted, ...rest.slice(before.length)];
}

/** Moves it after the others of its priority. */
function demoted(slow: Route, routes: readonly Route[]): readonly Route[] {
  const rest = routes.filter((route) => route !== slow);
  const before = rest.filter((route) => route.priority <= slow.priority);
  return [...before, slow, ...rest.slice(before.length)];
}

function isSlow(route: Route, routes: readonly Route[], pool: UpstreamPool): boolean {
  if (route.capabilities.accountBoundThinking) return false;
  const meanMs = firstByteMs(route, pool);
  if (meanMs === undefined || meanMs < SLOW_MS_MIN) return false;
  return routes.some((other) => {
    if (other.upstream === route.upstream || other.priority !== route.priority) return false;
    const otherMs = firstByteMs(other, pool);
    return otherMs !== undefined && otherMs * SLOW_FACTOR <= meanMs;
  });
}

function firstByteMs({ upstream, upstreamModel }: Route, pool: UpstreamPool): number | undefined {
  return pool.get(upstream)?.firstBytes.meanMs(upstreamModel);
}

/*
 * Remembers which upstream last answered each conversation. Its next turn then finds a warm prompt cache there, and the
 * account that can open its sealed reasoning (docs/translation-rules.md rule 8).
 *
 * This is a preference, not a rule: health, free slots and failover come first. Forgetting costs little, because the
 * first choice for a conversation is derived from its own hash, which is the same on every replica.
 */

/** After a longer pause, the cache is cold anyway. */
const CONVERSATION_TTL_MS = 3_600_000;
/** Conversations remembered at once; those that paused longest are evicted. */
const CONVERSATIONS_MAX = 100_000;

export class Affinity {
  readonly #upstreams: Recent<string>;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#upstreams = createRecent({ max: CONVERSATIONS_MAX, ttlMs: CONVERSATION_TTL_MS, clock });
  }

  /**
   * @param conversation a hash that is constant from turn to turn; never the text.
   * @returns the name of the upstream that answered it last.
   */
  recall(conversation: string): string | undefined {
    return this.#upstreams.get(conversation);
  }

  /** Records the upstream that has answered, so that the next turn goes to it. */
  remember(conversation: string, upstream: string): void {
    this.#upstreams.set(conversation, upstream);
  }
}

const DRAW_BYTES = 6;

/** A number in [0, 1) that is constant for a conversation and route, and uniform over conversations. */
export function drawOf(conversation: string, route: Route): number {
  const digest = hash("sha256", `${conversation}\n${route.upstream}\n${route.upstreamModel}`, "buffer");
  return digest.readUIntBE(0, DRAW_BYTES) / 2 ** (8 * DRAW_BYTES);
}
