/** The columns of usage and its costs. */
import { count, usd } from "../../parts/format.ts";
import { T } from "../../texts/texts.ts";
import type { Costs } from "./usage.ts";

const W = T.operator.reconcile;

export const COSTS = [
  { title: W.requests, cell: (row: Costs) => count(row.requests), isNumber: true },
  { title: W.input, cell: (row: Costs) => count(row.input_tokens), isNumber: true },
  { title: W.output, cell: (row: Costs) => count(row.output_tokens), isNumber: true },
  { title: W.charged, cell: (row: Costs) => usd(row.usd), isNumber: true },
  { title: W.cost, cell: (row: Costs) => usd(row.cost_usd), isNumber: true },
  { title: W.absorbed, cell: (row: Costs) => usd(row.absorbed_usd), isNumber: true },
  { title: W.margin, cell: (row: Costs) => usd(row.margin_usd), isNumber: true },
];
