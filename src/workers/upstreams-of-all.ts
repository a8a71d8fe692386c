/** State of the upstreams over all workers, for operators, whom the parent answers. */
import type { UpstreamState } from "../console/routes/upstreams.ts";

const WORSE: Readonly<Record<UpstreamState["health"], number>> = { healthy: 0, probe: 1, ejected: 2 };

/** Adds up counts; of what each worker judges for itself, returns the worst. */
export function upstreamsOfAll(reports: readonly (readonly UpstreamState[])[]): UpstreamState[] {
  const merged = new Map<string, UpstreamState>();
  for (const state of reports.flat()) {
    const other = merged.get(state.name);
    merged.set(state.name, other ? both(other, state) : state);
  }
  return [...merged.values()];
}

function both(one: UpstreamState, other: UpstreamState): UpstreamState {
  const worse = WORSE[other.health] > WORSE[one.health] ? other : one;
  const limitedModels = new Map(one.limitedModels);
  for (const [model, ms] of other.limitedModels) limitedModels.set(model, Math.max(ms, limitedModels.get(model) ?? 0));
  const outcomes: Record<string, number> = { ...one.outcomes };
  for (const [kind, count] of Object.entries(other.outcomes)) outcomes[kind] = (outcomes[kind] ?? 0) + count;
  return {
    ...worse,
    restMs: Math.max(one.restMs, other.restMs),
    inFlight: one.inFlight + other.inFlight,
    maxConcurrency: one.maxConcurrency + other.maxConcurrency,
    queued: one.queued + other.queued,
    limitedModels,
    outcomes,
  };
}
