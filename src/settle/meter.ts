/**
 * From what an upstream counted, or what was seen going by, to the tokens that are billed (ARCHITECTURE.md promise 3).
 */
import type { ChargeTerms } from "../store/charge-terms.ts";
import type { Route } from "../values/catalog.ts";
import { addCounts, billedUsage, type ProducedCounts, stepInput, type Usage } from "../values/tokens/usage.ts";

/** What is known when a request ends. */
export interface MeasuredReply {
  /** The upstream's count, if it gave one; in a cut stream perhaps a snapshot from before its end. */
  readonly usage: Usage | undefined;
  /** Whether that count is the upstream's last word. */
  readonly final: boolean;
  /** What was seen going by. */
  readonly produced: ProducedCounts;
  /** Time in which nothing was shown since the last count, the first second of each silence left out. */
  readonly silentMs: number;
  /** The model that the upstream says has answered, where that is another than was asked for. */
  readonly answeredBy?: string | undefined;
}

/** How a missing count is made up for. */
export interface Evidence {
  /** Input tokens. */
  readonly input: number;
  /** How many real tokens one token estimated from characters may be, at least 1. */
  readonly visibleFactor: number;
  /** Whether a token is reckoned for each event, where its bytes allow that. */
  readonly byEvent: boolean;
  /** Hidden tokens for each second of silence. */
  readonly hiddenPerS: number;
  /** The most that the upstream was asked for, all choices together. */
  readonly outputMost: number;
}

export interface Metered {
  readonly usage: Usage;
  /** Who counted; the ledger line says so. */
  readonly counted: "upstream" | "estimate";
}

const MS_PER_S = 1_000;
/** The densest text has about so many bytes per token; events with fewer bytes are not a token each. */
const DENSEST_BYTES_PER_TOKEN = 2;

/**
 * The upstream's final count, if there is one; a side that it lacks is estimated. Without a final count: what was seen
 * plus what may have been hidden, within the limit asked for. A snapshot then gives the input, which is final from the
 * start, and the output where that is more than what was seen.
 */
export function meter({ usage: counted, final, produced, silentMs }: MeasuredReply, evidence: Evidence): Metered {
  const shown = visible(produced, evidence);
  const isLast = final && counted !== undefined;
  const { usage, estimated } = billedUsage(counted, {
    final: isLast,
    inputEstimate: evidence.input,
    outputEstimate: shown,
  });
  if (!estimated) return { usage, counted: "upstream" };
  const isOutputCounted = isLast && (!counted.outputUncounted || counted.unsplit !== undefined);
  if (isOutputCounted) return { usage, counted: "estimate" };
  const hidden = Math.ceil((silentMs / MS_PER_S) * evidence.hiddenPerS);
  // What was shown counts even beyond the limit asked for; what may be hidden counts only up to it.
  const output = Math.max(usage.output, Math.min(addCounts(usage.output, hidden), evidence.outputMost));
  return { usage: { ...usage, output }, counted: "estimate" };
}

function visible({ bytes, tokens, deltas }: ProducedCounts, { visibleFactor, byEvent }: Evidence): number {
  const read = Math.ceil(tokens * visibleFactor);
  if (!byEvent) return read;
  return Math.max(read, Math.min(deltas, Math.ceil(bytes / DENSEST_BYTES_PER_TOKEN)));
}

/** What a count says that cannot be, as far as the catalog knows. */
export type Surprise = "output_above_max" | "output_above_limit" | "input_above_context";

/** What the catalog and the request expected. */
export interface Expected {
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  /** The most that the upstream was asked for, of each choice. */
  readonly outputMost: number;
  readonly choices: number;
}

/** What is surprising about an upstream's final count, which is charged anyway. */
export function surprisesOf({ usage, counted }: Metered, expected: Expected): readonly Surprise[] {
  if (counted !== "upstream") return [];
  const { contextTokens, maxOutputTokens, outputMost, choices } = expected;
  const surprises: Surprise[] = [];
  if (usage.output > maxOutputTokens * choices) surprises.push("output_above_max");
  else if (usage.output > outputMost * choices) surprises.push("output_above_limit");
  // A reply that has read its input more than once has a context for each reading.
  if (stepInput(usage) > contextTokens) surprises.push("input_above_context");
  return surprises;
}

/**
 * Counts the extras that a request asked for by a member of its own (`price.options`) as calls of tools of their names: no
 * upstream counts them, so each is one call.
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
