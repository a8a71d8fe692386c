/** The tier that a try is charged at, and what it costs the operator. */
import type { ChargeTerms } from "../store/charge-terms.ts";

/**
 * The tier that an upstream was asked for, whatever its client asked for: a translation may have left it out.
 * @param sent undefined for the standard one. What is sent of several that have a price together only is charged as those.
 */
export function tierCharged({ model, terms }: Pick<ChargeTerms, "model" | "terms">, sent: string | undefined) {
  return sent === undefined || model.price.tiers.has(sent) ? sent : terms.tier;
}
