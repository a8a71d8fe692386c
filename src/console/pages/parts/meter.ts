/** How much of something is left, as a bar beside the figures. */
import { html, type VNode } from "./view.ts";

interface MeterProps {
  /** What the bar is of, for those who do not see it. */
  readonly label: string;
  /** Amounts as the gateway writes them. Read as numbers for the bar's length alone. */
  readonly rest: string;
  readonly limit: string;
}

const PARTS = 1_000;
/** Below it the bar warns. */
const LITTLE = 0.2;

export function Meter({ label, rest, limit }: MeterProps): VNode {
  const share = Math.min(1, Math.max(0, Number(rest) / Number(limit) || 0));
  const kind = share <= LITTLE ? "meter little" : "meter";
  return html`<progress class=${kind} max=${PARTS} value=${Math.round(share * PARTS)} aria-label=${label}></progress>`;
}
