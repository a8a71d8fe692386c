/**
 * Types for dashboards, and their translation into Grafana's JSON with Grafana's SDK; the only file that imports it. A
 * panel has a title, a description of what it means, a unit, and thresholds.
 */
import { GraphThresholdsStyleConfigBuilder, GraphThresholdsStyleMode } from "@grafana/grafana-foundation-sdk/common";
import {
  DashboardBuilder,
  DashboardCursorSync,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  RowBuilder,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  VariableRefresh,
  VariableSort,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder, PromQueryFormat } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder as StatBuilder } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as TableBuilder } from "@grafana/grafana-foundation-sdk/table";
import { PanelBuilder as TimeseriesBuilder } from "@grafana/grafana-foundation-sdk/timeseries";

/** Units by Grafana's names for them. */
export const UNIT = {
  usd: "currencyUSD",
  seconds: "s",
  share: "percentunit",
  perSecond: "reqps",
  count: "short",
  bytes: "bytes",
  tokensPerSecond: "tokens/s",
} as const;

export interface Query {
  /** PromQL; Grafana fills in `$group`, `$model`, `$upstream` and `$__rate_interval`. */
  readonly expr: string;
  /** The name of a series: `{{label}}` is replaced. */
  readonly legend: string;
}

export interface Panel {
  readonly kind: "timeseries" | "stat" | "table";
  /** A question, or a quantity with its unit. */
  readonly title: string;
  /** What it means and what to do about it. */
  readonly description: string;
  readonly unit: (typeof UNIT)[keyof typeof UNIT];
  readonly queries: readonly Query[];
  /** The value is yellow from `warn` on and red from `alarm` on; with `below`, below them. */
  readonly thresholds?: { readonly warn: number; readonly alarm: number; readonly below?: boolean };
  /** Values below 0 are drawn. */
  readonly signed?: true;
  /** In 24ths of the row; default 8 for a series and 4 for a figure. */
  readonly width?: number;
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

export interface Dashboard {
  /** Part of its address in Grafana; never changed once published. */
  readonly uid: string;
  readonly title: string;
  readonly description: string;
  readonly rows: readonly Row[];
}

const DATASOURCE = { type: "prometheus", uid: "$datasource" };
const SERIES_WIDTH = 8;
const FIGURE_WIDTH = 4;
const SERIES_HEIGHT = 8;
const FIGURE_HEIGHT = 5;

/** The filters of a dashboard, and the series whose labels are the choices. */
const VARIABLES = [
  { name: "group", label: "Group", query: "label_values(tollgate_requests_total, group)" },
  { name: "model", label: "Model", query: "label_values(tollgate_requests_total, model)" },
  { name: "upstream", label: "Upstream", query: "label_values(tollgate_upstream_attempts_total, upstream)" },
];

/** @returns the dashboard as the JSON that Grafana provisions from a file. */
export function build({ uid, title, description, rows }: Dashboard): unknown {
  const dashboard = new DashboardBuilder(title)
    .uid(uid)
    .description(description)
    .tags(["tollgate"])
    .timezone("browser")
    .tooltip(DashboardCursorSync.Crosshair)
    .refresh("30s")
    .time({ from: "now-6h", to: "now" })
    .readonly()
    .withVariable(new DatasourceVariableBuilder("datasource").label("Data source").type("prometheus"));
  for (const { name, label, query } of VARIABLES) dashboard.withVariable(choice(name, label, query));
  for (const row of rows) {
    dashboard.withRow(new RowBuilder(row.title));
    for (const panel of row.panels) dashboard.withPanel(drawn(panel));
  }
  return dashboard.build();
}

function choice(name: string, label: string, query: string): QueryVariableBuilder {
  return new QueryVariableBuilder(name)
    .label(label)
    .datasource(DATASOURCE)
    .query(query)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue(".*")
    .current({ text: "All", value: "$__all" });
}

function drawn(panel: Panel): StatBuilder | TableBuilder | TimeseriesBuilder {
  const { title, description, unit, queries } = panel;
  const builder = builderOf(panel)
    .title(title)
    .description(description)
    .datasource(DATASOURCE)
    .unit(unit)
    .height(panel.kind === "stat" ? FIGURE_HEIGHT : SERIES_HEIGHT)
    .span(panel.width ?? (panel.kind === "stat" ? FIGURE_WIDTH : SERIES_WIDTH))
    .thresholds(stepsOf(panel));
  for (const [index, query] of queries.entries()) builder.withTarget(target(panel, query, index));
  return builder;
}

function builderOf({ kind, thresholds, signed }: Panel): StatBuilder | TableBuilder | TimeseriesBuilder {
  if (kind === "stat") return new StatBuilder();
  if (kind === "table") return new TableBuilder();
  const series = new TimeseriesBuilder().fillOpacity(10).lineWidth(1);
  if (!signed) series.min(0);
  const dashed = new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed);
  return thresholds ? series.thresholdsStyle(dashed) : series;
}

function stepsOf({ thresholds }: Panel): ThresholdsConfigBuilder {
  const steps = thresholds
    ? thresholds.below
      ? [
          { value: null, color: "red" },
          { value: thresholds.alarm, color: "yellow" },
          { value: thresholds.warn, color: "green" },
        ]
      : [
          { value: null, color: "green" },
          { value: thresholds.warn, color: "yellow" },
          { value: thresholds.alarm, color: "red" },
        ]
    : [{ value: null, color: "blue" }];
  return new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(steps);
}

function target({ kind }: Panel, { expr, legend }: Query, index: number): DataqueryBuilder {
  const query = new DataqueryBuilder()
    .expr(expr)
    .legendFormat(legend)
    .refId(String.fromCharCode("A".charCodeAt(0) + index));
  if (kind === "table") return query.instant().format(PromQueryFormat.Table);
  if (kind === "stat") return query.instant();
  return query.range().exemplar(expr.includes("first_token"));
}
