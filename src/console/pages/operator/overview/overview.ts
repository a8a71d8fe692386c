/** The current state of the gateway: readiness, traffic, refusals and spend. */
import type { ReadinessAnswer, VersionAnswer } from "../../../answers/answers.ts";
import type { LiveAnswer } from "../../../answers/live.ts";
import { Chart } from "../../parts/chart.ts";
import { causeInWords } from "../../parts/explained.ts";
import { count, usd } from "../../parts/format.ts";
import { useAnswer } from "../../parts/load.ts";
import { hrefOf } from "../../parts/router.ts";
import { html, useEffect, useMemo, useState, type VNode } from "../../parts/view.ts";
import { Awaited, Badge, Figure, Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";
import { useEvery } from "../common/follow.ts";
import { type LiveState, useLive } from "./live.ts";

const READY_EVERY_MS = 5_000;
const W = T.operator.overview;

export function OperatorOverview(): VNode {
  const live = useLive();
  const version = useAnswer<VersionAnswer>("/version");
  const newest = live.snapshots.at(-1);
  return html`<h1>${W.title}</h1>
    <${Ready} />
    <${Awaited} loaded=${version}>${(data: VersionAnswer) => html`<p class="faint">${W.version(data.version, data.build, data.node)} <a href=${hrefOf(["configuration"])}>${W.generation(data.generation)}</a></p>`}</${Awaited}>
    <section aria-labelledby="live">
      <h2 id="live">${W.live} <${Badge} kind=${live.isConnected ? "good" : "warn"}>${live.isConnected ? W.watching : W.connecting}</${Badge}></h2>
      ${newest ? html`<${LiveFigures} newest=${newest} /><${LiveCharts} live=${live} /><${LiveTables} newest=${newest} />` : html`<p class="faint">${T.common.loading}</p>`}
    </section>`;
}

/** Readiness is requested outside of the API, as a front does, and answers 503 with its reasons. */
function Ready(): VNode {
  const [ready, setReady] = useState<ReadinessAnswer | "away" | undefined>(undefined);
  const look = () =>
    fetch("/readyz")
      .then((response) => response.json() as Promise<ReadinessAnswer>)
      .then(setReady, () => setReady("away"));
  useEffect(() => void look(), []);
  useEvery(READY_EVERY_MS, look);
  if (ready === undefined) return html`<p class="faint">${T.common.loading}</p>`;
  if (ready === "away") return html`<p class="note warn" role="status">${T.common.unreachable}</p>`;
  return html`<div class=${ready.ready ? "note" : "note warn"} role="status">
    <strong>${ready.ready ? W.ready : W.notReady}</strong>
    ${[...ready.reasons, ...ready.notes].length > 0 && html`<ul>${[...ready.reasons, ...ready.notes].map((reason) => html`<li>${reason}</li>`)}</ul>`}
  </div>`;
}

const ms = (value: number | null) => (value === null ? "–" : W.ms(count(value)));
const percent = (share: number) => `${count(Math.round(share * 1_000) / 10)} %`;

/** The first snapshot after nobody watched has nothing to compare with. */
const isFirst = ({ window_seconds: seconds }: LiveAnswer) => seconds === 0;
const rateOf = (one: LiveAnswer) => (isFirst(one) ? null : one.requests_per_second);

function LiveFigures({ newest }: { newest: LiveAnswer }): VNode {
  const rate = rateOf(newest);
  return html`<dl class="figures">
    <${Figure} title=${W.rate}>${rate === null ? "–" : count(rate)}</${Figure}>
    <${Figure} title=${W.inFlight} hint=${W.queued(count(newest.queued))}>${count(newest.in_flight)}</${Figure}>
    <${Figure} title=${W.firstToken} hint=${newest.first_token_p95_ms === null ? "" : W.p95(ms(newest.first_token_p95_ms))}>${ms(newest.first_token_p50_ms)}</${Figure}>
    <${Figure} title=${W.journal} hint=${W.unsettled(count(newest.unsettled))}>${percent(newest.journal_fill)}</${Figure}>
  </dl>`;
}

const DRAWN_S = 300;

/** The charts always span five minutes; they are empty before the first snapshot. */
function series(snapshots: readonly LiveAnswer[], ...values: ((one: LiveAnswer) => number | null)[]) {
  const at = snapshots.map((one) => Date.parse(one.at) / 1_000);
  const missing = Math.max(0, DRAWN_S - at.length);
  const before = Array.from({ length: missing }, (_, index) => (at[0] ?? 0) - missing + index);
  const drawn = values.map((value) => [...before.map(() => null), ...snapshots.map(value)]);
  return [[...before, ...at], ...drawn];
}

function LiveCharts({ live }: { live: LiveState }): VNode {
  const { snapshots } = live;
  const rates = useMemo(() => series(snapshots, rateOf), [snapshots]);
  const half = (one: LiveAnswer) => one.first_token_p50_ms;
  const most = (one: LiveAnswer) => one.first_token_p95_ms;
  const tokens = useMemo(() => series(snapshots, half, most), [snapshots]);
  return html`<div class="panels">
    <section class="panel"><h3>${W.rate}</h3>
      <${Chart} label=${W.rate} data=${rates} series=${[{ name: W.rate, colour: "--chart-1" }]} /></section>
    <section class="panel"><h3>${W.firstToken}</h3>
      <${Chart} label=${W.firstToken} data=${tokens} format=${(value: number) => W.ms(count(value))}
        series=${[{ name: W.half, colour: "--chart-1" }, { name: W.most, colour: "--chart-2" }]} /></section>
  </div>`;
}

type Refusals = LiveAnswer["refusals"][number];
type Spend = LiveAnswer["spend"][number];

function LiveTables({ newest }: { newest: LiveAnswer }): VNode {
  const span = isFirst(newest) ? undefined : W.span(count(Math.max(1, Math.round(newest.window_seconds))));
  const refusals = [
    { title: W.cause, cell: (row: Refusals) => html`<span title=${row.cause}>${causeInWords(row.cause)}</span>` },
    { title: W.requests, cell: (row: Refusals) => count(row.requests), isNumber: true },
  ];
  const spend = [
    { title: T.operator.group, cell: (row: Spend) => row.group },
    { title: W.charged, cell: (row: Spend) => usd(row.usd), isNumber: true },
  ];
  return html`<div class="panels">
    <section class="panel"><h3>${W.refusals}</h3><p class="faint">${span ?? W.begun}</p>
      ${span && html`<${Table} caption=${W.refusals} columns=${refusals} rows=${newest.refusals} keyOf=${(row: Refusals) => row.cause} empty=${W.noRefusals} />`}</section>
    <section class="panel"><h3>${W.spend}</h3><p class="faint">${span ?? W.begun}</p>
      ${span && html`<${Table} caption=${W.spend} columns=${spend} rows=${newest.spend} keyOf=${(row: Spend) => row.group} empty=${W.noSpend} />`}</section>
  </div>`;
}
