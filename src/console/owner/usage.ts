/** `GET /usage` of the console: what the owner's account has spent, grouped by UTC day, model, key and group. */
import type { Store } from "../../store/contract.ts";
import { inOrder, readSpan, totalOf, type UsageTotal } from "../../store/sums/day-sums.ts";
import { sumByMember } from "../../store/sums/member-sums.ts";
import type { Clock } from "../../values/time.ts";
import { type OwnSumAnswer, type OwnUsageAnswer, OwnUsageShape } from "../answers/own-usage.ts";
import { showUsageTotal } from "../answers/present.ts";
import { malformed } from "../refusal.ts";
import { type ConsoleRoute, route } from "../routes/contract.ts";
import { closed, Day, Type } from "../vocabulary.ts";
import type { OwnScope } from "./own-store.ts";

const SpanQuery = Type.Object({ since: Type.Optional(Day), until: Type.Optional(Day) }, closed);

export function ownUsageRoutes(
  { store, clock }: { readonly store: Store; readonly clock: Clock },
  scope: OwnScope,
): readonly ConsoleRoute[] {
  return [
    route({
      method: "GET",
      path: "/usage",
      id: "showOwnUsage",
      summary: "Show what was charged, per UTC day of the request, grouped by day, model, key and group",
      answers: { 200: OwnUsageShape },
      query: SpanQuery,
      async handle({ query }) {
        const span = readSpan(query, clock.wallMs());
        if ("rule" in span) throw malformed(span.member, span.rule, "Days are UTC; leave both out for the last 30.");
        const sums = await sumByMember(store, scope.tag, span);
        const body: OwnUsageAnswer = {
          ...span,
          total: showUsageTotal(totalOf(sums.group.values())),
          by_day: shown(sums.day),
          by_model: shown(sums.model),
          by_key: shown(sums.key),
          by_group: shown(sums.group),
        };
        return { status: 200, body };
      },
    }),
  ];
}

function shown(totals: ReadonlyMap<string, UsageTotal>): readonly OwnSumAnswer[] {
  return [...inOrder(totals)].map(([name, one]) => ({ name, ...showUsageTotal(one) }));
}
