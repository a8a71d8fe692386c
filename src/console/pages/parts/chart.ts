/** Charts of numbers over time: the only importer of uplot. A table next to each chart has the same numbers. */
import uPlot, { type AlignedData, type Options } from "uplot";
import { T } from "../texts/texts.ts";
import { axisTime } from "./format.ts";
import { html, useEffect, useRef, type VNode } from "./view.ts";

interface Series {
  readonly name: string;
  /** A color of the style sheet: `--chart-1`. */
  readonly colour: string;
}

interface ChartProps {
  /** What the chart shows, for screen readers. */
  readonly label: string;
  /** Seconds since the epoch, then one list of values for each series. */
  readonly data: AlignedData;
  readonly series: readonly Series[];
  readonly isBars?: boolean;
  readonly heightPx?: number;
  /** Formats a value at the axis. */
  readonly format?: (value: number) => string;
}

export function Chart({ label, data, series, isBars = false, heightPx = 220, format }: ChartProps): VNode {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  useEffect(() => {
    const host = place.current;
    if (!host) return;
    const style = getComputedStyle(host);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const options: Options = {
      width: host.clientWidth,
      height: heightPx,
      cursor: { drag: { x: false, y: false } },
      legend: { show: series.length > 1 },
      axes: [
        {
          ...axis,
          // Pixels and seconds between two marks: hours and minutes are wider than a date, and seconds would overlap.
          ...(!isBars && { space: 66, incrs: [60, 300, 900, 3_600] }),
          // uplot's own dates are American in each language.
          values: (_plot: uPlot, marks: number[], _axis: number, _space: number, step: number) =>
            marks.map((mark) => axisTime(mark, step)),
        },
        { ...axis, size: 64, ...(format && { values: (_plot, values) => values.map(format) }) },
      ],
      series: [
        { label: T.common.time, value: (_plot: uPlot, at: number | null) => (at === null ? "--" : axisTime(at, 1)) },
        ...series.map(({ name, colour: own }, place) => ({
          label: name,
          stroke: colour(own),
          // Not only by color.
          ...(place > 0 && { dash: [6, 4] }),
          fill: isBars ? colour(own) : "transparent",
          ...(isBars && { paths: uPlot.paths.bars?.({ size: [0.7, 40] }) }),
          points: { show: false },
        })),
      ],
      scales: { y: { range: (_plot, _min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    } as Options;
    const made = new uPlot(options, data, host);
    plot.current = made;
    const watcher = new ResizeObserver(() => made.setSize({ width: host.clientWidth, height: heightPx }));
    watcher.observe(host);
    return () => {
      watcher.disconnect();
      made.destroy();
    };
  }, [series.length, isBars, heightPx]);
  useEffect(() => plot.current?.setData(data), [data]);
  return html`<div class="chart" ref=${place} role="img" aria-label=${label}></div>`;
}
