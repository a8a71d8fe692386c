/**
 * Streams whose client named no output limit (promise 1): what the first hold covers is no limit of theirs, and the hold
 * grows with them as far as funds allow.
 */
import { leastNano, type NanoUsd } from "../values/money.ts";
import type { Multiplier } from "../values/price.ts";
import { holdOf, type Measured } from "./terms.ts";

/** How the hold of such a stream may grow. */
export interface Growth {
  /** Output tokens of each choice that the first hold covers, and each step adds. */
  readonly stepTokens: number;
  /** Output tokens of each choice that the model can give: no hold need cover more. */
  readonly outputTokensMax: number;
  /** What is held for so many output tokens of each choice. */
  holdFor(outputTokens: number): NanoUsd;
}

/**
 * How far a hold may grow, or undefined when it covers all that the model can give from the beginning.
 * @param terms with the input that the hold was made for.
 */
export function growthOf(terms: Measured, multiplier: Multiplier): Growth | undefined {
  const outputTokensMax = terms.model.maxOutputTokens;
  const stepTokens = terms.outputLimit;
  const most = holdOf(terms, multiplier, outputTokensMax);
  if (holdOf(terms, multiplier, stepTokens) >= most) return undefined;
  const holdFor = (outputTokens: number) => leastNano(holdOf(terms, multiplier, outputTokens), most);
  return { stepTokens, outputTokensMax, holdFor };
}

/**
 * The output limit for an upstream whose protocol demands one: all that the model can give and the context has room for,
 * since servers refuse what would pass the context. The input is an upper bound, so the default is always left.
 */
export function requiredLimit({ model, inputTokens, outputLimit }: Measured): number {
  const room = Math.max(outputLimit, model.contextTokens - inputTokens);
  return Math.min(model.maxOutputTokens, room);
}
