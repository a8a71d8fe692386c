/** The health of each upstream, refreshed regularly; and what one of them is expected to bill. */
import type { UpstreamAnswer } from "../../../answers/answers.ts";
import { count } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Awaited, Problem, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { useEvery } from "../common/follow.ts";
import { State } from "../common/words.ts";
import { COSTS } from "../reconcile/columns.ts";
import { type Costs, useUsage } from "../reconcile/usage.ts";
import type { OperatorPageProps } from "../session.ts";

const LOOK_EVERY_MS = 2_000;
const W = T.operator.upstreams;

export function Upstreams({ place }: OperatorPageProps): VNode {
  const [, name] = place.path;
  return name === undefined ? html`<${Health} />` : html`<${Bill} key=${name} name=${name} />`;
}

const COLUMNS = [
  {
    title: T.operator.upstream,
    cell: (row: UpstreamAnswer) => html`<a href=${hrefOf(["upstreams", row.name])}>${row.name}</a>`,
  },
  {
    title: T.operator.state,
    cell: (row: UpstreamAnswer) =>
      html`<${State} of=${row.health} />${row.reason !== null && html`<br /><small>${row.reason}${row.rest_seconds > 0 && ` · ${W.rest(count(row.rest_seconds))}`}</small>`}`,
  },
  {
    title: W.inFlight,
    cell: (row: UpstreamAnswer) => W.of(count(row.in_flight), count(row.max_concurrency)),
    isNumber: true,
  },
  { title: W.queued, cell: (row: UpstreamAnswer) => count(row.queued), isNumber: true },
  { title: W.outcomes, cell: (row: UpstreamAnswer) => outcomesOf(row) },
  {
    title: W.limited,
    cell: (row: UpstreamAnswer) =>
      row.limited_models.map(
        (one) => html`<small class="fact">${one.model} · ${W.rest(count(one.rest_seconds))}</small>`,
      ),
  },
];

const KINDS: Readonly<Record<string, string>> = W.kinds;

function outcomesOf({ outcomes }: UpstreamAnswer): string | VNode[] {
  const all = Object.entries(outcomes).filter(([, number]) => number > 0);
  if (all.length === 0) return "–";
  return all.map(
    ([kind, number]) => html`<small class="fact" title=${kind}>${KINDS[kind] ?? kind} ${count(number)}</small>`,
  );
}

function Health(): VNode {
  const upstreams = useAnswer<{ readonly items: readonly UpstreamAnswer[] }>("/upstreams");
  useEvery(LOOK_EVERY_MS, () => upstreams.isLoading || upstreams.reload());
  return html`<h1>${W.title}</h1><p class="faint">${W.words}</p>
    <${Awaited} loaded=${upstreams}>${(data: { items: readonly UpstreamAnswer[] }) => html`<${Table} caption=${W.title} columns=${COLUMNS} rows=${data.items} keyOf=${(row: UpstreamAnswer) => row.name} empty=${W.none} />`}</${Awaited}>`;
}

interface UpstreamDay extends Costs {
  readonly day: string;
  readonly model: string;
}

/** By day and model, for the gateway's default span of 30 days. */
function Bill({ name }: { name: string }): VNode {
  const usage = useUsage<UpstreamDay>(
    `/upstreams/${encodeURIComponent(name)}/usage`,
    ({ day, model }) => `${day} ${model}`,
  );
  const columns = [
    { title: T.operator.day, cell: (row: UpstreamDay) => row.day },
    { title: T.operator.model, cell: (row: UpstreamDay) => row.model },
    ...COSTS,
  ];
  return html`<p><a href=${hrefOf(["upstreams"])}>← ${W.title}</a></p>
    <h1>${name}</h1><p class="faint">${W.bill}${usage.since && ` ${T.operator.days(usage.since, usage.until ?? "")}`}</p>
    <${Problem} refused=${usage.refused} retry=${usage.reload} />
    ${usage.isLoading && html`<p class="faint">${T.common.loading}</p>`}
    ${!usage.isLoading && !usage.refused && html`<${Table} caption=${W.bill} columns=${columns} rows=${usage.rows} keyOf=${(row: UpstreamDay) => `${row.day} ${row.model}`} empty=${T.operator.reconcile.none} />`}`;
}
