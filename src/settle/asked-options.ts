/** Extras that a request asked for by a member of its own (`price.options`): no upstream counts them, so each is one call. */
import type { ChargeTerms } from "../store/charge-terms.ts";
import type { Route } from "../values/catalog.ts";
import type { Metered } from "./meter.ts";

/**
 * Counts the extras as calls of tools of their names.
 * @param route that answered; one that was translated to did not get them. Undefined: not known yet, they count.
 */
export function withOptions(
  metered: Metered,
  asked: Pick<ChargeTerms["terms"], "client" | "options">,
  route: Route | undefined,
): Metered {
  const { client, options = [] } = asked;
  const carried = !route || route.protocol === client || route.capabilities.openaiNative;
  if (options.length === 0 || !carried) return metered;
  const toolCalls = { ...metered.usage.toolCalls };
  for (const option of options) toolCalls[option] = (toolCalls[option] ?? 0) + 1;
  return { ...metered, usage: { ...metered.usage, toolCalls } };
}
