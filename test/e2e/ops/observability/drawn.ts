/** A dashboard's data as one page for any browser, to look at where Grafana itself cannot run. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Series } from "../../../rig/prometheus.ts";

const UPLOT = dirname(createRequire(import.meta.url).resolve("uplot/dist/uPlot.iife.min.js"));

export interface DrawnPanel {
  readonly title: string;
  readonly type: string;
  readonly unit: string;
  readonly series: readonly { readonly legend: string; readonly range: readonly Series[] }[];
}

/** @param columns panels side by side; figures are four. @returns self-contained HTML. */
export function pageOf(name: string, panels: readonly DrawnPanel[], columns = 3): string {
  const script = readFileSync(join(UPLOT, "uPlot.iife.min.js"), "utf8");
  const style = readFileSync(join(UPLOT, "uPlot.min.css"), "utf8");
  // `<` in a label must not end the script.
  const data = JSON.stringify(panels.map(chartOf)).replaceAll("<", "\\u003c");
  return `<!doctype html><meta charset="utf-8"><title>Tollgate / ${name}</title>
<style>${style}${STYLE}</style>
<h1>Tollgate <span>/ ${name}</span></h1>
<div id="figures"></div><div id="charts" style="grid-template-columns:repeat(${columns},1fr)"></div>
<script>${script}</script><script>${DRAW}
for (const chart of ${data}) draw(chart);</script>`;
}

const STYLE = `
body{font:14px "DejaVu Sans",Arial,sans-serif;color:#1f2933;background:#f5f7fa;margin:18px}
h1{font-size:22px;margin:0 0 14px}h1 span{color:#7b8794;font-weight:normal}
#figures,#charts{display:grid;gap:12px;margin-bottom:12px}#figures{grid-template-columns:repeat(4,1fr)}
section{background:#fff;border:1px solid #dfe4ea;border-radius:6px;padding:12px 14px;overflow:hidden}
h2{font-size:14px;font-weight:600;margin:0 0 6px;color:#3e4c59}b{font-size:30px;font-weight:600;color:#0b69a3}
.names{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:12px;color:#52606d;margin-top:4px}
.names i{display:inline-block;width:14px;height:4px;border-radius:2px;margin-right:5px;vertical-align:middle}`;

/** Runs in the browser: one section for each panel. */
const DRAW = `
const COLOURS = ["#2680c2","#e8912d","#3f9142","#cb3a4b","#8662c7","#17a2b8","#a0703c","#7b8794"];
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });
function shown(value, unit) {
  if (unit === "currencyUSD") return (value < 0 ? "-$" : "$") + SHORT.format(Math.abs(value));
  if (unit === "percentunit") return SHORT.format(value * 100) + " %";
  if (unit === "s") return value !== 0 && Math.abs(value) < 1 ? SHORT.format(value * 1000) + " ms" : SHORT.format(value) + " s";
  if (unit === "bytes") return SHORT.format(value) + "B";
  return SHORT.format(value);
}
function section(parent, title) {
  const box = document.getElementById(parent).appendChild(document.createElement("section"));
  box.appendChild(document.createElement("h2")).textContent = title;
  return box;
}
function draw({ title, unit, stat, names, columns }) {
  if (stat !== undefined) {
    section("figures", title).appendChild(document.createElement("b")).textContent = stat === null ? "no data yet" : shown(stat, unit);
    return;
  }
  const box = section("charts", title);
  const grid = { stroke: "#edf0f3", width: 1 };
  const font = '12px "DejaVu Sans",Arial,sans-serif';
  const ticks = { stroke: "#dfe4ea", size: 4 };
  const axis = { stroke: "#616e7c", font, grid, ticks };
  const series = names.map((label, i) => {
    const stroke = COLOURS[i % COLOURS.length];
    return { label, stroke, width: 2, fill: names.length < 3 ? stroke + "22" : undefined, points: { show: false } };
  });
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
  new uPlot({
    width: box.clientWidth - 28,
    height: 170,
    legend: { show: false },
    cursor: { show: false },
    series: [{}, ...series],
    axes: [
      { ...axis, size: 30, space: 60, values: (_, splits) => splits.map((at) => new Date(at * 1000).toLocaleTimeString("en", time)) },
      { ...axis, size: 62, space: 34, values: (_, splits) => splits.map((value) => shown(value, unit)) },
    ],
  }, columns, box);
  const list = box.appendChild(document.createElement("div"));
  list.className = "names";
  names.forEach((name, i) => {
    const item = list.appendChild(document.createElement("span"));
    item.appendChild(document.createElement("i")).style.background = COLOURS[i % COLOURS.length];
    item.append(name);
  });
}`;

/** The columns that uPlot draws: times, then one column of values for each series. */
function chartOf({ title, type, unit, series }: DrawnPanel): object {
  const all = series.flatMap(({ legend, range }) =>
    range.map(({ metric, values }) => ({
      name: legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? "") || "value",
      values: new Map(values),
    })),
  );
  if (type === "stat") {
    const last = [...(all[0]?.values.values() ?? [])].findLast((value) => Number.isFinite(value));
    return { title, unit, stat: last ?? null };
  }
  const times = [...new Set(all.flatMap(({ values }) => [...values.keys()]))].sort((a, b) => a - b);
  const columns = all.map(({ values }) => times.map((at) => finite(values.get(at))));
  return { title, unit, names: all.map(({ name }) => name), columns: [times, ...columns] };
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}
