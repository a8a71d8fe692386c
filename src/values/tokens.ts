/**
 * Token counts, as every stage speaks of them. Each protocol maps its own usage object to these kinds in its
 * `convert/<protocol>/usage.ts` and nowhere else (protocols.md 2.0.6).
 */

/**
 * What a request consumed. The five billable kinds do not overlap: `input` excludes everything cached, so that an
 * upstream that includes cached tokens in its input and one that does not cost the same.
 */
export interface Usage {
  /** Input tokens that were neither read from nor written to a prompt cache. */
  readonly input: number;
  /** Input tokens read from a prompt cache. */
  readonly cachedInput: number;
  /** Input tokens written to a prompt cache with the short (five-minute) life. */
  readonly cacheWrite: number;
  /** Input tokens written to a prompt cache with the one-hour life. */
  readonly cacheWrite1h: number;
  /** Output tokens, reasoning included. */
  readonly output: number;
  /** The part of `output` that was reasoning; shown, never billed on its own. */
  readonly reasoning: number;
  /** Calls of tools that cost by the call, by the tool's name in the price table. */
  readonly toolCalls: Readonly<Record<string, number>>;
}

export const NO_USAGE: Usage = Object.freeze({
  input: 0,
  cachedInput: 0,
  cacheWrite: 0,
  cacheWrite1h: 0,
  output: 0,
  reasoning: 0,
  toolCalls: Object.freeze({}),
});

/** The largest count that is believed from an upstream; above it the number is a lie (reliability rows C10, 64). */
export const TOKEN_COUNT_MAX = 1_000_000_000;

/**
 * Believes a count of an upstream only when it is a whole number within [0, TOKEN_COUNT_MAX].
 * @returns the count, or undefined for anything else (negative, fraction, string, Infinity).
 */
export function believableCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= TOKEN_COUNT_MAX
    ? value
    : undefined;
}

/** All input tokens, whatever their price. */
export function totalInput(usage: Usage): number {
  return usage.input + usage.cachedInput + usage.cacheWrite + usage.cacheWrite1h;
}
