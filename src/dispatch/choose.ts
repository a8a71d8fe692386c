/**
 * Picks among ordered routes: the first that is well, has room and can carry the request. What is passed over for its
 * health is asked when nothing else is left, so that no model ever loses its last route to our own judgement.
 */
import { hash } from "node:crypto";
import type { Route } from "../values/catalog.ts";
import { createRecent, type Recent } from "../values/collections/recent.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { Clock } from "../values/time.ts";
import type { AttemptRequest, DispatchAsk } from "./ask.ts";
import { type Failure, rowOf } from "./failure.ts";
import type { UpstreamPool } from "./upstream/pool.ts";
import type { Slot } from "./upstream/slots.ts";
import type { Upstream } from "./upstream/upstream.ts";

/** A route that could carry the request. */
export interface Candidate<T> {
  readonly route: Route;
  readonly upstream: Upstream;
  readonly encoded: AttemptRequest<T>;
}

/** A route with a slot taken and its attempt begun: the caller must run it, or `release` it. */
export interface Choice<T> extends Candidate<T> {
  readonly slot: Slot;
  /** Whether this attempt decides on the upstream's return. */
  readonly probe: boolean;
}

export type Chosen<T> =
  | { readonly kind: "chosen"; readonly choice: Choice<T> }
  /** All that could carry it are full. */
  | { readonly kind: "full"; readonly candidates: readonly Candidate<T>[] }
  | { readonly kind: "refused"; readonly refusal: Refusal };

/** Chooses for a request that has not been tried yet. */
export function choose<T>(ask: DispatchAsk<T>, routes: readonly Route[], pool: UpstreamPool): Chosen<T> {
  const well = wellAmong(routes, pool);
  const found = firstWithRoom(ask, well, pool);
  if (found.kind !== "refused" || well.length === routes.length) return found;
  const last = firstWithRoom(ask, soonestFirst(routes, well, pool), pool);
  // A route that is well and cannot carry the request explains more than one that is not there.
  return last.kind === "refused" && well.length > 0 ? found : last;
}

/**
 * Chooses again after a failure; undefined when the failure is the answer. Who has failed once does not queue. An
 * upstream that we merely doubt is asked before nobody is: our judgement never costs an answer that could be had.
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

/** Begins the attempt at a candidate whose slot has been granted. */
export function begun<T>(candidate: Candidate<T>, slot: Slot): Choice<T> {
  const { route, upstream, encoded } = candidate;
  return { route, upstream, encoded, slot, probe: upstream.health.begin(route.upstreamModel) };
}

/** Whether a candidate's upstream has fallen ill since it was one. */
export function isEjected<T>({ route, upstream }: Candidate<T>): boolean {
  return upstream.health.standing(route.upstreamModel) === "ejected";
}

/** Gives a choice up that was not run. */
export function release<T>({ route, upstream, slot, probe }: Choice<T>): void {
  slot.release();
  upstream.health.tell({ kind: "none", model: route.upstreamModel, retryAfterS: undefined, startedAtMs: 0, probe });
}

/** Mostly all are, and no list is made. */
function wellAmong(routes: readonly Route[], pool: UpstreamPool): readonly Route[] {
  return routes.every((route) => isWell(route, pool)) ? routes : routes.filter((route) => isWell(route, pool));
}

function isWell({ upstream, upstreamModel }: Route, pool: UpstreamPool): boolean {
  return pool.get(upstream)?.health.standing(upstreamModel) !== "ejected";
}

function soonestFirst(routes: readonly Route[], well: readonly Route[], pool: UpstreamPool): Route[] {
  const restMs = ({ upstream, upstreamModel }: Route) => pool.get(upstream)?.health.restMs(upstreamModel) ?? 0;
  return routes.filter((route) => !well.includes(route)).sort((left, right) => restMs(left) - restMs(right));
}

function firstWithRoom<T>(ask: DispatchAsk<T>, routes: readonly Route[], pool: UpstreamPool): Chosen<T> {
  let refusedBy: Refusal | undefined;
  let full: Route[] | undefined;
  for (const route of routes) {
    const upstream = pool.get(route.upstream);
    if (!upstream) continue;
    if (!upstream.slots.hasRoom()) {
      full ??= [];
      full.push(route);
      continue;
    }
    const encoded = ask.encodeFor(route);
    if (isRefusal(encoded)) refusedBy ??= encoded;
    else return { kind: "chosen", choice: begun({ route, upstream, encoded }, upstream.slots.take()) };
  }
  // A request that no full route can carry is refused at once and not after a wait.
  const candidates: Candidate<T>[] = [];
  for (const route of full ?? []) {
    const encoded = ask.encodeFor(route);
    if (isRefusal(encoded)) refusedBy ??= encoded;
    else candidates.push({ route, upstream: pool.get(route.upstream) as Upstream, encoded });
  }
  if (candidates.length > 0) return { kind: "full", candidates };
  return { kind: "refused", refusal: refusedBy ?? refusal("upstream_unavailable") };
}

/** The routes that a failure leaves open, best first. */
function routesAfter(routes: readonly Route[], tried: Route, failed: Failure): readonly Route[] {
  const { next } = rowOf(failed);
  if (next === "nowhere" || next === "without_reasoning") return [];
  const elsewhere = routes.filter((route) => route.upstream !== tried.upstream);
  if (next === "other_upstream") return elsewhere;
  if (next === "other_route") return routes.filter((route) => route !== tried);
  // The same upstream is only asked again when there is no other, and when it has not asked to be left alone.
  const beside = routes.filter((route) => route.upstream === tried.upstream && route !== tried);
  return elsewhere.length > 0 ? elsewhere : [...beside, ...((failed.retryAfterS ?? 0) === 0 ? [tried] : [])];
}

/*
 * The order in which a model's routes are tried, before anything is known of room.
 */

/**
 * Orders by priority (lower first); among equals by weighted chance without replacement.
 * @param draw a number in [0, 1), drawn once per route.
 */
export function orderRoutes(routes: readonly Route[], draw: (route: Route) => number): readonly Route[] {
  if (routes.length < 2) return routes;
  // Efraimidis and Spirakis 2006: sorting by ln(u) / weight draws without replacement in proportion to the weights.
  return routes
    .map((route) => ({ route, rank: Math.log(1 - draw(route)) / Math.max(route.weight, Number.MIN_VALUE) }))
    .sort((left, right) => left.route.priority - right.route.priority || right.rank - left.rank)
    .map(({ route }) => route);
}

/** A first byte that comes within this is fast enough for anybody. */
const SLOW_MS_MIN = 5_000;
/** Beyond it, so many times slower than another upstream is slow. */
const SLOW_FACTOR = 3;

/**
 * Moves the upstream that a conversation comes from to the front: of its own priority, or of all where only its account
 * can read what the conversation carries (`account_bound_thinking`). A slow one is not gone back to while another of its
 * priority is fast: an upstream that answers late but well would keep its conversations for ever.
 */
export function preferUpstream(
  routes: readonly Route[],
  name: string | undefined,
  pool: UpstreamPool,
): readonly Route[] {
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

/** After the others of its priority. */
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
 * Where conversations were answered last, so that their next turn finds a warm prompt cache there, and sealed reasoning
 * the account that can open it (docs/translation-rules.md rule 8).
 *
 * It is a wish, never a rule: health, room and failover come first. What is forgotten costs little, since
 * the first choice for a conversation is drawn from its own hash: every replica draws the same.
 */

/** A conversation that pauses for longer finds no warm cache anyway. */
const CONVERSATION_TTL_MS = 3_600_000;
/** Conversations remembered at once; those that paused for longest are drawn anew. */
const CONVERSATIONS_MAX = 100_000;

export class Affinity {
  readonly #upstreams: Recent<string>;

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#upstreams = createRecent({ max: CONVERSATIONS_MAX, ttlMs: CONVERSATION_TTL_MS, clock });
  }

  /**
   * @param conversation a hash that stays the same from turn to turn; of the text nothing comes here.
   * @returns the name of the upstream that answered it last.
   */
  recall(conversation: string): string | undefined {
    return this.#upstreams.get(conversation);
  }

  /** An upstream has answered: the next turn should come back to it. */
  remember(conversation: string, upstream: string): void {
    this.#upstreams.set(conversation, upstream);
  }
}

const DRAW_BYTES = 6;

/** A number in [0, 1) that is the same for the same conversation and route, and evenly spread over conversations. */
export function drawOf(conversation: string, route: Route): number {
  const digest = hash("sha256", `${conversation}\n${route.upstream}\n${route.upstreamModel}`, "buffer");
  return digest.readUIntBE(0, DRAW_BYTES) / 2 ** (8 * DRAW_BYTES);
}
