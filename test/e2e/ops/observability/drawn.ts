/** A dashboard's data as one page that any browser shows: where Grafana itself cannot run, this is what one looks at. */
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

/** @returns HTML that holds everything it needs. */
export function pageOf(name: string, panels: readonly DrawnPanel[]): string {
  const script = readFileSync(join(UPLOT, "uPlot.iife.min.js"), "utf8");
  const style = readFileSync(join(UPLOT, "uPlot.min.css"), "utf8");
  // `<` in a label must not end the script.
  const data = JSON.stringify(panels.map(chartOf)).replaceAll("<", "\\u003c");
  return `<!doctype html><meta charset="utf-8"><title>Tollgate / ${name}</title>
<style>${style}
body{font:13px sans-serif;background:#f4f5f5;margin:12px;display:grid;grid-template-columns:repeat(3,1fr);gap:10px}
h1{grid-column:1/-1;font-size:18px;margin:0}section{background:#fff;border:1px solid #ddd;padding:8px;overflow:hidden}
h2{font-size:13px;margin:0 0 4px}b{font-size:28px}.u-legend{font-size:10px;text-align:left}</style>
<h1>Tollgate / ${name}</h1><script>${script}</script><script>
for (const { title, stat, names, columns } of ${data}) {
  const box = document.body.appendChild(document.createElement("section"));
  box.appendChild(document.createElement("h2")).textContent = title;
  if (stat !== undefined) { box.appendChild(document.createElement("b")).textContent = stat; continue; }
  const colors = ["#3274d9","#e0b400","#37872d","#c4162a","#8f3bb8","#ff780a","#19a5a5","#6d6d6d"];
  new uPlot({ width: 400, height: 150, series: [{}, ...names.map((label, i) => ({ label, stroke: colors[i % 8] }))] }, columns, box);
}</script>`;
}

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
    return { title, unit, stat: last === undefined ? "no data yet" : String(Number(last.toPrecision(4))) };
  }
  const times = [...new Set(all.flatMap(({ values }) => [...values.keys()]))].sort((a, b) => a - b);
  const columns = all.map(({ values }) => times.map((at) => finite(values.get(at))));
  return { title, unit, names: all.map(({ name }) => name), columns: [times, ...columns] };
}

function finite(value: number | undefined): number | null {
  return value !== undefined && Number.isFinite(value) ? value : null;
}
