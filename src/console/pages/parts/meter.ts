/** How much is left of something, as a bar next to the figures. */
import { html, type VNode } from "./view.ts";

interface MeterProps {
  /** What the bar shows, for screen readers. */
  readonly label: string;
  /** Amounts as the gateway writes them. Converted to numbers only for the length of the bar. */
  readonly rest: string;
  readonly limit: string;
}

const PARTS = 1_000;
/** Below this share the bar has a warning color. */
const LITTLE = 0.2;

export function Meter({ label, rest, limit }: MeterProps): VNode {
  const share = Math.min(1, Math.max(0, Number(rest) / Number(limit) || 0));
  const kind = share <= LITTLE ? "meter little" : "meter";
  return html`<progress class=${kind} max=${PARTS} value=${Math.round(share * PARTS)} aria-label=${label}></progress>`;
}
