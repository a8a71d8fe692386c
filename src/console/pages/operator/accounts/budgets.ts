/** The use of the budgets of an account or a key. */
import type { AccountWithCardsAnswer } from "../../../answers/answers.ts";
import { instant, usd } from "../../parts/format.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Table } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

type Use = AccountWithCardsAnswer["budgets"][number];
const W = T.operator.budgets;

const COLUMNS = [
  { title: W.span, cell: (row: Use) => W.spans[row.span] },
  { title: W.limit, cell: (row: Use) => usd(row.limit_usd), isNumber: true },
  { title: W.spent, cell: (row: Use) => usd(row.spent_usd), isNumber: true },
  { title: W.held, cell: (row: Use) => usd(row.held_usd), isNumber: true },
  { title: W.rest, cell: (row: Use) => usd(row.rest_usd), isNumber: true },
  { title: W.resets, cell: (row: Use) => (row.resets_at === null ? T.common.never : instant(row.resets_at)) },
];

/** Renders nothing if there are no budgets. */
export function Budgets({ uses }: { uses: readonly Use[] }): VNode | null {
  if (uses.length === 0) return null;
  return html`<section><h2>${W.title}</h2>
    <${Table} caption=${W.title} columns=${COLUMNS} rows=${uses} keyOf=${(row: Use) => row.span} empty="" /></section>`;
}
