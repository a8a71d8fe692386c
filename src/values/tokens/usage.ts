/**
 * Token counts, in the kinds that every stage uses. Each protocol maps its own usage object to these kinds in its
 * `convert/<protocol>/usage.ts` and nowhere else (docs/translation-rules.md rule 44).
 */

/**
 * What a request consumed. The five billable kinds do not overlap: `input` excludes everything cached, so that
 * upstreams that include cached tokens in their input cost the same as those that do not.
 */
export interface Usage {
  /** Input tokens that were neither read from nor written to a prompt cache. */
  readonly input: number;
  /** Input tokens read from a prompt cache. */
  readonly cachedInput: number;
  /** Input tokens written to a prompt cache with the short (five-minute) lifetime. */
  readonly cacheWrite: number;
  /** Input tokens written to a prompt cache with the one-hour lifetime. */
  readonly cacheWrite1h: number;
  /** Output tokens, including reasoning. */
  readonly output: number;
  /** The part of `output` that was reasoning; shown, never billed separately. */
  readonly reasoning: number;
  /** Calls of tools that are charged per call, by the name under which the upstream counts them. */
  readonly toolCalls: Readonly<Record<string, number>>;
  /**
   * The most input that was read at one time, for a reply that read its input more than once (compaction, tools of the
   * server). It decides the price step. Absent: all input.
   */
  readonly longestInput?: number;
  /** Tokens that the upstream reported as one sum of input and output; they are in neither count. Absent: none. */
  readonly unsplit?: number;
  /** Set if the upstream has not counted its output, or only the part in `output`. */
  readonly outputUncounted?: true;
}

/** What is known of a reply's output by observing it. */
export interface ProducedCounts {
  /** UTF-8 bytes of text, reasoning, refusal, tool calls and all other output. */
  readonly bytes: number;
  /** Tokens, estimated from the characters. */
  readonly tokens: number;
  /** Events with any output: each holds at least one token. */
  readonly deltas: number;
  /** What tools of the server have done, as far as the reply shows it; absent: nothing. */
  readonly served?: ServedCounts | undefined;
}

/** What tools of the server have done within one reply. */
export interface ServedCounts {
  /** Calls that have begun, by the server's names of the tools. */
  readonly calls: Readonly<Record<string, number>>;
  /** Calls with a result that is not an error, if the reply shows this separately; absent: it does not. */
  readonly ended?: Readonly<Record<string, number>> | undefined;
  /** Tokens of their results, which the model has to read, estimated from the characters. */
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
 * The largest plausible count of an upstream; a larger number is not accepted (docs/failure-model.md rows C10 and 64).
 */
export const TOKEN_COUNT_MAX = 1_000_000_000;

/**
 * Accepts a count of an upstream only if it is a whole number within [0, TOKEN_COUNT_MAX].
 * @returns the count, or undefined for anything else (negative, fraction, string, Infinity).
 */
export function plausibleCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= TOKEN_COUNT_MAX
    ? value
    : undefined;
}

/** Kinds of input tokens in `Usage`, each of which is accepted up to TOKEN_COUNT_MAX. */
const INPUT_KINDS = 4;

/** Like `plausibleCount`, for the sum that `totalInput` returns. */
export function plausibleTotalInput(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= INPUT_KINDS * TOKEN_COUNT_MAX
    ? value
    : undefined;
}

/** A sum of accepted counts, capped so that it is acceptable itself. */
export function addCounts(...counts: readonly number[]): number {
  let sum = 0;
  for (const count of counts) sum += count;
  return Math.min(sum, TOKEN_COUNT_MAX);
}

/** All input tokens, including cached ones. */
export function totalInput(usage: Usage): number {
  return usage.input + usage.cachedInput + usage.cacheWrite + usage.cacheWrite1h;
}

/** The input that decides which price step applies. */
export function stepInput(usage: Usage): number {
  return usage.longestInput ?? totalInput(usage);
}

/** What is known of a reply in addition to the upstream's count. */
interface BesideCount {
  /** Whether the count is the upstream's last one. */
  readonly final: boolean;
  /** Input tokens by the request's size. */
  readonly inputEstimate: number;
  /** Output tokens by what was relayed. */
  readonly outputEstimate: number;
}

/**
 * The tokens that a reply is billed for and that its client is shown: the upstream's count if it is final, else at
 * least what was relayed.
 * @returns `estimated`: whether any part is our own estimate.
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
 * Completes the upstream's count, so that a missing half is never billed as nothing. Missing are an output that was not
 * counted (or counted as 0 although some was relayed), an input of 0 tokens (no request is that short), and the split
 * of a sum. What was counted stays unchanged. Of a sum, the part that exceeds the input estimate is output, the more
 * expensive kind.
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
