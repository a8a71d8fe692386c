/**
 * Token counts, in the kinds that every stage uses. Each protocol maps its own usage object to these kinds in its
 * `convert/<protocol>/usage.ts` and nowhere else (docs/translation-rules.md rule 44).
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
  /** Calls of tools that cost by the call, by the name that the upstream counts them under. */
  readonly toolCalls: Readonly<Record<string, number>>;
  /**
   * The most input that was read at one time, for a reply that read more than once (compaction, tools of the server): it
   * decides the price step. All input unless given.
   */
  readonly longestInput?: number;
  /** Tokens that the upstream gave as one sum of input and output; they are in neither count. Absent: none. */
  readonly unsplit?: number;
  /** Set when the upstream has not counted its output, or only the part in `output`. */
  readonly outputUncounted?: true;
}

/** What is known of a reply's output by looking at it. */
export interface ProducedCounts {
  /** UTF-8 bytes of text, reasoning, refusal, tool calls and all other output. */
  readonly bytes: number;
  /** Tokens, estimated from the characters. */
  readonly tokens: number;
  /** Events that held any output: each holds a token at least. */
  readonly deltas: number;
  /** What tools of the server have done, as far as the reply shows it; absent: nothing. */
  readonly served?: ServedCounts | undefined;
}

/** What tools of the server have done within one reply. */
export interface ServedCounts {
  /** Calls that have begun, by the server's names of the tools. */
  readonly calls: Readonly<Record<string, number>>;
  /** Calls that have come to a result which is no error, where a reply shows that apart; absent: it does not. */
  readonly ended?: Readonly<Record<string, number>> | undefined;
  /** Tokens of what they found, which the model has to read, estimated from the characters. */
  readonly foundTokens: number;
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

/**
 * The largest count that is believed from an upstream; above it the number is a lie (docs/failure-model.md rows C10 and
 * 64).
 */
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

/** A sum of believable counts, capped so that it is a believable count itself. */
export function addCounts(...counts: readonly number[]): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return Math.min(sum, TOKEN_COUNT_MAX);
}

/** All input tokens, cached ones included. */
export function totalInput(usage: Usage): number {
  return usage.input + usage.cachedInput + usage.cacheWrite + usage.cacheWrite1h;
}

/** The input that decides which price step applies. */
export function stepInput(usage: Usage): number {
  return usage.longestInput ?? totalInput(usage);
}

/** What is known of a reply beside the upstream's count. */
interface BesideCount {
  /** Whether the count is the upstream's last word. */
  readonly final: boolean;
  /** Input tokens by the request's size. */
  readonly inputEstimate: number;
  /** Output tokens by what went by. */
  readonly outputEstimate: number;
}

/**
 * The tokens that a reply is billed for and that its client is shown: the upstream's count where it is final, else no
 * less than what went by.
 * @returns `estimated`: whether anything of it is our own estimate.
 */
export function billedUsage(
  counted: Usage | undefined,
  beside: BesideCount,
): { readonly usage: Usage; readonly estimated: boolean } {
  const completed = completedUsage(counted, beside);
  if (beside.final) return completed;
  const { usage } = completed;
  return { usage: { ...usage, output: Math.max(usage.output, beside.outputEstimate) }, estimated: true };
}

/**
 * Fills in what the upstream left out of its count, so that half a count never bills the other half as nothing: an output
 * that was not counted, or as nothing though some went by, an input of no token at all (no request is that short), a sum that
 * nobody split. What was counted stays as it is; of a sum, what the input cannot account for is output, the dearer kind.
 */
function completedUsage(
  counted: Usage | undefined,
  { inputEstimate, outputEstimate }: BesideCount,
): { readonly usage: Usage; readonly estimated: boolean } {
  // Nearly always both sides are counted: 0.04 us, where the copy below takes 0.4.
  const isWhole = counted !== undefined && counted.unsplit === undefined && counted.outputUncounted === undefined;
  if (isWhole && totalInput(counted) > 0 && (counted.output > 0 || outputEstimate === 0)) {
    return { usage: counted, estimated: false };
  }
  const { unsplit = 0, outputUncounted, ...known } = counted ?? { ...NO_USAGE, outputUncounted: true };
  if (unsplit > 0) {
    const input = Math.min(inputEstimate, unsplit);
    return { usage: { ...known, input, output: addCounts(known.output, unsplit - input) }, estimated: true };
  }
  const noInput = totalInput(known) === 0;
  const noOutput = outputUncounted === true || (known.output === 0 && outputEstimate > 0);
  if (!noInput && !noOutput) return { usage: known, estimated: false };
  const input = noInput ? inputEstimate : known.input;
  const output = noOutput ? Math.max(known.output, outputEstimate) : known.output;
  return { usage: { ...known, input, output }, estimated: true };
}
