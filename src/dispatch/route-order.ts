/**
 * The order in which a model's routes are tried, before anything is known of room.
 */
import type { Route } from "../values/catalog.ts";
import type { UpstreamPool } from "./upstream/pool.ts";

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
