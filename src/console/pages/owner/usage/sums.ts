/** Sums of what was spent, as a chart and as a table. */
import type { OwnSumAnswer, OwnTotalAnswer, OwnUsageAnswer } from "../../../answers/own-usage.ts";
import { Chart } from "../../parts/chart.ts";
import { csv, download } from "../../parts/csv.ts";
import { count, day, usd } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { html, useLayoutEffect, useMemo, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Button, Figure, Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import type { KeyNames } from "../key-names.ts";
import { daysOf, localMidnight, nanoOf, type UsageSpan } from "./spans.ts";

type SummedBy = "day" | "model" | "key" | "group";

interface SumsProps {
  readonly span: UsageSpan;
  readonly by: SummedBy;
  readonly keyNames: KeyNames;
}

/** Number of rows shown at first, and added by each press of the button. */
const ROWS = 100;

export function Sums({ span, by, keyNames }: SumsProps): VNode {
  const query = new URLSearchParams({ since: span.since, until: span.until });
  const loaded = useAnswer<OwnUsageAnswer>(`/usage?${query}`);
  return html`<${Awaited} loaded=${loaded}>${(data: OwnUsageAnswer) => html`<${Shown} data=${data} by=${by} keyNames=${keyNames} />`}</${Awaited}>`;
}

interface ShownProps {
  readonly data: OwnUsageAnswer;
  readonly by: SummedBy;
  readonly keyNames: KeyNames;
}

function Shown({ data, by, keyNames }: ShownProps): VNode {
  const words = T.owner.usage;
  const rows = useMemo(() => inOrder(data[`by_${by}`], by), [data, by]);
  const [most, setMost] = useState(ROWS);
  // Before the page is painted: afterwards it would undo a press of the button.
  useLayoutEffect(() => setMost(ROWS), [data, by]);
  const saved = () => download(`usage-by-${by}-${data.since}-${data.until}.csv`, asCsv(rows, by, keyNames));
  return html`<${Totals} total=${data.total} />
    ${by === "day" && rows.length > 0 && html`<${DayChart} data=${data} />`}
    <div class="panel">
      <${Table} caption=${words.table} columns=${columnsOf(by, keyNames, rows)} rows=${rows.slice(0, most)}
        keyOf=${(row: OwnSumAnswer) => row.name} empty=${words.empty} />
      ${rows.length > most && html`<p><${Button} kind="quiet" onClick=${() => setMost(most + ROWS)}>${words.moreRows(rows.length - most)}</${Button}></p>`}
    </div>
    ${rows.length > 0 && html`<${Button} onClick=${saved}>${T.common.csv}</${Button}>`}`;
}

function Totals({ total }: { readonly total: OwnTotalAnswer }): VNode {
  const words = T.owner.usage;
  return html`<dl class="figures">
    <${Figure} title=${words.spent}>${usd(total.usd)}</${Figure}>
    <${Figure} title=${words.requests}>${count(total.requests)}</${Figure}>
    <${Figure} title=${words.inputTokens} hint=${`${count(total.cached_input_tokens)} ${words.cachedTokens}`}>${count(allInput(total))}</${Figure}>
    <${Figure} title=${words.outputTokens} hint=${`${count(total.reasoning_tokens)} ${words.reasoningTokens}`}>${count(total.output_tokens)}</${Figure}>
  </dl>`;
}

const allInput = (sum: OwnTotalAnswer): number => sum.input_tokens + sum.cached_input_tokens + sum.cache_write_tokens;

function DayChart({ data }: { readonly data: OwnUsageAnswer }): VNode {
  const words = T.owner.usage;
  const points = useMemo(() => {
    const amounts = new Map(data.by_day.map(({ name, usd: amount }) => [name, Number(amount)]));
    const days = daysOf(data);
    return [days.map(localMidnight), days.map((one) => amounts.get(one) ?? null)] as [number[], (number | null)[]];
  }, [data]);
  return html`<div class="panel"><${Chart} label=${words.chart(day(data.since), day(data.until))} data=${points}
    series=${[{ name: words.amount, colour: "--chart-1" }]} isBars=${true} format=${axisAmount} /></div>`;
}

/** A rounded amount for the axis; the table has the exact one. */
function axisAmount(value: number): string {
  return new Intl.NumberFormat(document.documentElement.lang, { maximumSignificantDigits: 3 }).format(value);
}

/** Days newest first, everything else by amount. */
function inOrder(rows: readonly OwnSumAnswer[], by: SummedBy): readonly OwnSumAnswer[] {
  if (by === "day") return rows.toReversed();
  const ranked = rows.map((row) => ({ row, nano: nanoOf(row.usd) }));
  return ranked.sort((a, b) => (a.nano < b.nano ? 1 : a.nano > b.nano ? -1 : 0)).map(({ row }) => row);
}

function columnsOf(
  by: SummedBy,
  keyNames: KeyNames,
  rows: readonly OwnSumAnswer[],
): readonly TableColumn<OwnSumAnswer>[] {
  const words = T.owner.usage;
  const titles = { day: words.byDay, model: words.byModel, key: words.byKey, group: words.byGroup };
  const most = rows.reduce((top, row) => Math.max(top, Number(row.usd)), 0);
  return [
    { title: titles[by], cell: (row) => nameOf(row.name, by, keyNames) },
    { title: words.amount, isNumber: true, cell: (row) => usd(row.usd) },
    { title: words.share, cell: (row) => html`<${Bar} part=${most === 0 ? 0 : Number(row.usd) / most} />` },
    { title: words.requests, isNumber: true, cell: (row) => count(row.requests) },
    {
      title: words.inputTokens,
      isNumber: true,
      cell: (row) =>
        html`<span>${count(allInput(row))}${noted(row.cached_input_tokens, words.cachedTokens)}${noted(row.cache_write_tokens, words.cacheWriteTokens)}</span>`,
    },
    {
      title: words.outputTokens,
      isNumber: true,
      cell: (row) =>
        html`<span>${count(row.output_tokens)}${noted(row.reasoning_tokens, words.reasoningTokens)}</span>`,
    },
  ];
}

const noted = (tokens: number, words: string) => tokens > 0 && html`<small>${count(tokens)} ${words}</small>`;

function nameOf(name: string, by: SummedBy, keyNames: KeyNames): string | VNode {
  const words = T.owner.usage;
  if (by === "day") return day(name);
  if (by === "model") return name || words.noModel;
  if (by !== "key") return name;
  if (name === "") return words.noKey;
  const known = keyNames.get(name);
  return known?.name
    ? html`<span><bdi>${known.name}</bdi><small class="mono">${name}</small></span>`
    : html`<span class="mono">${name}</span>`;
}

/** @param part of the full width, from 0 to 1 */
function Bar({ part }: { readonly part: number }): VNode {
  return html`<svg class="bar" aria-hidden="true"><rect class="track" width="100%" height="100%" rx="3" /><rect width=${`${(part * 100).toFixed(2)}%`} height="100%" rx="3" /></svg>`;
}

function asCsv(rows: readonly OwnSumAnswer[], by: SummedBy, keyNames: KeyNames): string {
  const head = [
    by,
    ...(by === "key" ? ["name"] : []),
    "usd",
    "requests",
    "input_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
  ];
  const body = rows.map((row) => [
    row.name,
    ...(by === "key" ? [keyNames.get(row.name)?.name ?? ""] : []),
    row.usd,
    row.requests,
    row.input_tokens,
    row.cached_input_tokens,
    row.cache_write_tokens,
    row.output_tokens,
    row.reasoning_tokens,
  ]);
  return csv([head, ...body]);
}
