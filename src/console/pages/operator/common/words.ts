/** Figures and states as the operator's pages show them. */
import { count, usd } from "../../parts/format.ts";
import { html, type VNode } from "../../parts/view.ts";
import { Badge } from "../../parts/widgets.ts";
import { T } from "../../texts/texts.ts";

/** An amount, or the text for none. */
export const usdOrNone = (text: string | null): string => (text === null ? T.common.none : usd(text));
export const countOrNone = (value: number | null): string => (value === null ? T.common.none : count(value));

const KINDS: Readonly<Record<string, "good" | "warn" | "bad" | "plain">> = {
  normal: "good",
  healthy: "good",
  running: "good",
  done: "good",
  good: "good",
  balanced: "good",
  suspended: "warn",
  waiting: "warn",
  probe: "warn",
  refused: "warn",
  restoring: "warn",
  claimed: "warn",
  revoked: "bad",
  closed: "plain",
  ejected: "bad",
  unknown: "bad",
  stopped: "bad",
  unbalanced: "bad",
};

/** A state as a colored word. */
export function State({ of }: { of: string }): VNode {
  const words: Readonly<Record<string, string>> = T.operator.states;
  return html`<${Badge} kind=${KINDS[of] ?? "plain"}>${words[of] ?? of}</${Badge}>`;
}

/** An amount as whole nano-dollars, exactly. */
export function nanoOf(text: string): bigint {
  const [, sign = "", whole = "0", fraction = ""] = /^(-?)(\d+)\.(\d{1,9})$/.exec(text) ?? [];
  const nano = BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0"));
  return sign === "-" ? -nano : nano;
}

/** Nano-dollars as text. */
export function textOf(nano: bigint): string {
  const absolute = nano < 0n ? -nano : nano;
  const fraction = (absolute % 1_000_000_000n)
    .toString()
    .padStart(9, "0")
    .replace(/0{1,7}$/, "");
  return `${nano < 0n ? "-" : ""}${absolute / 1_000_000_000n}.${fraction}`;
}
