/** The spend of each of the last days, as a chart and as a table. */
import type { OverviewAnswer } from "../../../answers/own.ts";
import { Chart } from "../../parts/chart.ts";
import { count, day, usd } from "../../parts/format.ts";
import { html, useMemo, type VNode } from "../../parts/view.ts";
import { Table, type TableColumn } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

const W = T.owner.overview;
const DAY_S = 86_400;

type Day = OverviewAnswer["days"][number];

export function Spend({ overview }: { overview: OverviewAnswer }): VNode {
  const { days, total_usd, since, until } = overview;
  const data = useMemo(() => barsOf(days), [days]);
  const hasSpent = days.some(({ requests, usd: spent }) => requests > 0 || Number(spent) !== 0);
  const columns: readonly TableColumn<Day>[] = [
    { title: W.day, cell: (one) => day(one.day) },
    { title: W.spent, isNumber: true, cell: (one) => usd(one.usd) },
    { title: W.requests, isNumber: true, cell: (one) => count(one.requests) },
  ];
  return html`<section class="panel">
    <h2>${W.spend}</h2>
    ${
      hasSpent
        ? html`<${Chart}
            label=${W.spendPicture(usd(total_usd), day(since), day(until))}
            data=${data}
            series=${SERIES}
            isBars
            format=${axisAmount}
          />
          <details><summary>${W.asTable}</summary>
            <${Table} caption=${W.spend} columns=${columns} rows=${[...days].reverse()} keyOf=${(one: Day) => one.day} empty=${W.noSpend} />
          </details>`
        : html`<p class="empty">${W.noSpend}</p>`
    }
  </section>`;
}

const SERIES = [{ name: W.spent, colour: "--chart-1" }];

/** A rounded amount for the axis. */
function axisAmount(value: number): string {
  return new Intl.NumberFormat(document.documentElement.lang, { maximumSignificantDigits: 3 }).format(value);
}

/**
 * Heights of the bars, as rounded numbers. A UTC day is placed at the same date of the axis, which is in the reader's
 * time zone. An empty day at either end keeps the outer bars complete.
 */
function barsOf(days: readonly Day[]): [number[], (number | null)[]] {
  const places = days.map(({ day: date }) => {
    const [year, month, dayOfMonth] = date.split("-").map(Number) as [number, number, number];
    return new Date(year, month - 1, dayOfMonth).getTime() / 1_000;
  });
  const [first = 0] = places;
  const last = places.at(-1) ?? 0;
  return [
    [first - DAY_S, ...places, last + DAY_S],
    [null, ...days.map((one) => Number(one.usd) || null), null],
  ];
}
