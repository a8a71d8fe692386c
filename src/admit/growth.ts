/**
 * Streams whose client named no output limit (ARCHITECTURE.md promise 1): the first hold does not limit them, but grows
 * with them as far as funds allow.
 */
import { leastNano, type NanoUsd } from "../values/money.ts";
import type { Multiplier } from "../values/price.ts";
import { holdOf, type Terms } from "./terms.ts";

/** How the hold of such a stream may grow. */
export interface Growth {
  /** Output tokens of each choice that the first hold covers, and each step adds. */
  readonly stepTokens: number;
  /**
   * Output tokens of each choice that model and context allow: no hold need cover more. The upstream is asked for fewer where
   * funds do not reach so far at admission (`Permit.outputMost`).
   */
  readonly outputTokensMax: number;
  /** What is held for so many output tokens of each choice. */
  holdFor(outputTokens: number): NanoUsd;
}

/**
 * How far a hold may grow, or undefined when it covers all that may come from the beginning.
 * @param terms with the input that the hold was made for.
 */
export function growthOf(terms: Terms, multiplier: Multiplier): Growth | undefined {
  const outputTokensMax = openLimit(terms);
  const stepTokens = terms.outputLimit;
  const most = holdOf(terms, multiplier, outputTokensMax);
  if (holdOf(terms, multiplier, stepTokens) >= most) return undefined;
  const holdFor = (outputTokens: number) => leastNano(holdOf(terms, multiplier, outputTokens), most);
  return { stepTokens, outputTokensMax, holdFor };
}

/** If estimates say that a prompt fills its context, this part is still left to the answer. */
const CONTEXT_PER_ROOM = 32;

/**
 * The output limit that an upstream gets where the client has named none: all that the model can give and the context has
 * room for, since servers refuse a sum above the context. The input is counted at its upper bound; where that leaves less
 * than the default, half of what is likely left is asked for, up to the default.
 */
export function openLimit({ model, inputTokens, inputEstimate, outputLimit }: Terms): number {
  const { contextTokens, maxOutputTokens } = model;
  const likely = Math.max((contextTokens - inputEstimate) / 2, contextTokens / CONTEXT_PER_ROOM, 1);
  const room = Math.max(contextTokens - inputTokens, Math.min(outputLimit, Math.floor(likely)));
  return Math.min(maxOutputTokens, room);
}
