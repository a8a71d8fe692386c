/** What was charged, what it cost and the margin; and whether every ledger adds up. */

import { csv, download } from "../../parts/csv.ts";
import { usd } from "../../parts/format.ts";
import { go, hrefOf } from "../../parts/router.ts";
import { html, useState, type VNode } from "../../parts/view.ts";
import { Button, Figure, Problem, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { Input, type Typed } from "../common/write.ts";
import type { OperatorPageProps } from "../session.ts";
import { COSTS } from "./columns.ts";
import { both, type Costs, useUsage } from "./usage.ts";
import { Verification } from "./verification.ts";

const BY = ["group", "model", "upstream", "account", "key", "day"] as const;
type MarginBy = (typeof BY)[number];
type UsageRow = Costs & Partial<Record<MarginBy, string>>;
const W = T.operator.reconcile;

const NOTHING: Costs = {
  usd: "0.00",
  cost_usd: "0.00",
  absorbed_usd: "0.00",
  margin_usd: "0.00",
  requests: 0,
  input_tokens: 0,
  cached_input_tokens: 0,
  cache_write_tokens: 0,
  output_tokens: 0,
  reasoning_tokens: 0,
};

export function Reconcile({ place }: OperatorPageProps): VNode {
  const by = BY.find((one) => one === place.query.get("by")) ?? "group";
  const span = ["since", "until"].map((name) => [name, place.query.get(name) ?? ""] as [string, string]);
  const query = new URLSearchParams([["by", by], ...span.filter(([, day]) => day !== "")]);
  return html`<h1>${W.title}</h1><p class="faint">${W.words}</p>
    <${Filters} key=${String(query)} by=${by} since=${place.query.get("since") ?? ""} until=${place.query.get("until") ?? ""} />
    <${Sums} key=${`sums ${query}`} by=${by} path=${`/usage?${query}`} />
    <${Verification} />`;
}

function Filters(props: { by: string; since: string; until: string }): VNode {
  const [typed, setTyped] = useState<Typed>({ ...props });
  const isBad = !!typed.since && !!typed.until && typed.since > typed.until;
  const submitted = (event: Event) => {
    event.preventDefault();
    if (isBad) return;
    go(hrefOf(["reconcile"], { by: typed.by, since: typed.since || undefined, until: typed.until || undefined }));
  };
  const fields = [
    { name: "by", label: W.by, options: BY.map((one) => [one, T.operator[one]] as const) },
    { name: "since", label: W.since, type: "date" as const },
    { name: "until", label: W.until, type: "date" as const },
  ];
  return html`<form class="filters" onSubmit=${submitted}>
    ${fields.map((field) => html`<${Input} field=${field} value=${typed[field.name]} wrong=${field.name === "since" && isBad ? T.common.badSpan : undefined} onValue=${(value: string) => setTyped((old: Typed) => ({ ...old, [field.name]: value }))} />`)}
    <${Button} kind="main" disabled=${isBad}>${W.show}</${Button}>
  </form>`;
}

function Sums({ by, path }: { by: MarginBy; path: string }): VNode {
  const usage = useUsage<UsageRow>(path, (row) => row[by] ?? "");
  const { rows, refused, isLoading, reload, since, until } = usage;
  if (refused) return html`<${Problem} refused=${refused} retry=${reload} />`;
  if (isLoading) return html`<p class="faint">${T.common.loading}</p>`;
  const total = rows.reduce<Costs>(both, NOTHING);
  const columns = [{ title: T.operator[by], cell: (row: UsageRow) => row[by] || "–" }, ...COSTS];
  const save = () =>
    download(
      `usage-${by}-${since}-${until}.csv`,
      csv([
        [by, ...Object.keys(NOTHING)],
        ...rows.map((row) => [row[by] ?? "", ...Object.keys(NOTHING).map((name) => String(row[name as keyof Costs]))]),
      ]),
    );
  return html`<p class="faint">${T.operator.days(since ?? "", until ?? "")}</p>
    <dl class="figures">
      <${Figure} title=${W.charged} hint=${W.chargedHint}>${usd(total.usd)}</${Figure}>
      <${Figure} title=${W.cost} hint=${W.costHint}>${usd(total.cost_usd)}</${Figure}>
      <${Figure} title=${W.absorbed} hint=${W.absorbedHint}>${usd(total.absorbed_usd)}</${Figure}>
      <${Figure} title=${W.margin} hint=${W.marginHint}>${usd(total.margin_usd)}</${Figure}>
    </dl>
    <${Table} caption=${W.title} columns=${columns} rows=${rows} keyOf=${(row: UsageRow) => row[by] ?? ""} empty=${W.none} />
    ${rows.length > 0 && html`<p><${Button} onClick=${save}>${T.common.csv}</${Button}></p>`}`;
}
