/** How hard the model shall think, in each dialect (docs/translation-rules.md rule 27). */
import type { Capabilities, Effort } from "../../values/catalog.ts";
import { EFFORTS } from "../../values/catalog.ts";
import type { ReasoningWish } from "../hub.ts";

type Strength = Exclude<Effort, "none">;

/** The thinking budget of each effort, in tokens. */
const BUDGET_TOKENS: Readonly<Record<Strength, number>> = {
  minimal: 1024,
  low: 4096,
  medium: 10_240,
  high: 24_576,
  xhigh: 32_768,
  max: 65_536,
};

/** Tokens that stay for the answer beside a thinking budget, and the smallest budget that messages takes. */
export const BUDGET_TOKENS_MIN = 1024;

/** The budget of an effort, in tokens. */
export function budgetOf(effort: Strength): number {
  return BUDGET_TOKENS[effort];
}

/**
 * The effort that the upstream takes for the one that was asked for: the same, else the highest below, else the lowest
 * there is. Undefined when the upstream takes none at all.
 */
export function nearestEffort(wanted: Strength, efforts: readonly Effort[]): Strength | undefined {
  const strengths = EFFORTS.filter((effort): effort is Strength => effort !== "none" && efforts.includes(effort));
  const below = strengths.filter((effort) => EFFORTS.indexOf(effort) <= EFFORTS.indexOf(wanted));
  return below.at(-1) ?? strengths[0];
}

/** The word that switches reasoning off: `none`, else the lowest effort; undefined when there is no such parameter. */
function offEffort(efforts: readonly Effort[]): Effort | undefined {
  return EFFORTS.find((effort) => efforts.includes(effort));
}

/** The effort that a wish amounts to, a messages budget read as one; undefined when the client left it open. */
export function wantedEffort(wish: ReasoningWish): Strength | undefined {
  if (wish.effort !== undefined) return wish.effort;
  if (wish.budgetTokens === undefined) return undefined;
  if (wish.budgetTokens < 4096) return "low";
  if (wish.budgetTokens < 16_384) return "medium";
  return wish.budgetTokens < 32_768 ? "high" : "xhigh";
}

/** The effort word for a chat or responses upstream; undefined: send none. */
export function openaiEffort(wish: ReasoningWish, capabilities: Capabilities): Effort | undefined {
  if (wish.off) return offEffort(capabilities.efforts);
  const wanted = wantedEffort(wish);
  return wanted === undefined ? undefined : nearestEffort(wanted, capabilities.efforts);
}

/** Whether the client asked for something that this upstream has no word for. */
export function effortIsLost(wish: ReasoningWish, capabilities: Capabilities): boolean {
  return wantedEffort(wish) !== undefined && !wish.off && capabilities.efforts.every((effort) => effort === "none");
}
