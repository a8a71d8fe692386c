/** Sums per day in the canonical form of an inspected account: for tests. */
import { dayField } from "../names.ts";
import type { AccountState, DaySum, UpstreamDaySum } from "../records.ts";

export type DaySums = Pick<AccountState, "days" | "counts" | "costs" | "upstreams">;

/** @param sums of all days, and those of upstreams */
export function daySumsAsState(sums: readonly DaySum[], upstreams: readonly UpstreamDaySum[]): DaySums {
  const named = sums.map((sum) => ({ ...sum, field: dayField(sum.group, sum.model, sum.key) }));
  return {
    days: byDay(named, ({ field, amount }) => [field, amount]),
    counts: byDay(
      named.filter(({ counts }) => counts.requests !== 0),
      ({ field, counts }) => [field, counts],
    ),
    costs: byDay(
      named.filter(({ cost, absorbed }) => cost > 0n || absorbed > 0n),
      ({ field, cost, absorbed }) => [field, `${cost} ${absorbed}`],
    ),
    upstreams: byDay(upstreams, ({ day: _, ...sum }) => [`${sum.upstream} ${sum.model}`, sum]),
  };
}

function byDay<S extends { readonly day: string }, T>(
  sums: readonly S[],
  entry: (sum: S) => [string, T],
): Record<string, Record<string, T>> {
  const days: Record<string, Record<string, T>> = {};
  for (const sum of sums) days[sum.day] = { ...days[sum.day], ...Object.fromEntries([entry(sum)]) };
  return days;
}
