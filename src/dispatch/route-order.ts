/**
 * The order in which a model's routes are tried.
 */
import type { Route } from "../values/catalog.ts";

/**
 * Orders by priority (lower first); among equals by weighted chance without replacement.
 * @param random a number in [0, 1), drawn once per route.
 */
export function orderRoutes(routes: readonly Route[], random: () => number): Route[] {
  if (routes.length < 2) return [...routes];
  // Efraimidis and Spirakis 2006: sorting by ln(u) / weight draws without replacement in proportion to the weights.
  return routes
    .map((route) => ({ route, rank: Math.log(1 - random()) / Math.max(route.weight, Number.MIN_VALUE) }))
    .sort((left, right) => left.route.priority - right.route.priority || right.rank - left.rank)
    .map(({ route }) => route);
}
