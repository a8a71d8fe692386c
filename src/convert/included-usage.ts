/**
 * Usage of servers whose input count should include cached tokens and whose output count should include reasoning (chat
 * completions, responses). Many servers leave one or the other out; their total shows which. docs/usage-forms.md lists
 * each form with its source.
 */

import { type JsonObject, objectOf } from "../values/json-object.ts";
import { isToolName, TOOLS_MAX } from "../values/tokens/tool-calls.ts";
import { addCounts, NO_USAGE, plausibleCount, type Usage } from "../values/tokens/usage.ts";

/** The server's counts under neutral names; undefined: not given, or not plausible. */
interface IncludedCounts {
  readonly input: number | undefined;
  readonly output: number | undefined;
  readonly total: number | undefined;
  /** Read from a cache. */
  readonly cached: number;
  /** Written to a cache, for any lifetime. */
  readonly written: number;
  /** The part of `written` with the long lifetime, which costs more. */
  readonly written1h: number;
  readonly reasoning: number;
  /** Whether the reasoning is known to be counted outside of the output, even if the total suggests otherwise. */
  readonly reasoningBeside?: boolean;
  /** Input tokens that the server counts outside of its input count. */
  readonly moreInput?: number;
}

const OUTPUT_UNCOUNTED = { outputUncounted: true } as const;

/** Converts to counts that do not overlap. @returns undefined if nothing was counted. */
export function usageOfIncluded(included: IncludedCounts): Usage | undefined {
  const { input, output, total = 0, reasoning } = included;
  if (input === undefined && output === undefined) return unsplitUsage(included);
  const allInput = input === undefined ? inputFromTotal(included) : addCounts(input, cacheBeside(included, input));
  const side = outputOf(included, allInput, output ?? Math.max(0, total - allInput, reasoning));
  const { cached, written, written1h } = included;
  const cachedInput = Math.min(cached, allInput);
  const allWritten = Math.min(written, allInput - cachedInput);
  const cacheWrite1h = Math.min(written1h, allWritten);
  // Written member by member: 0.09 us. A spread of each part took 0.31 us.
  const usage: Usage = {
    input: allInput - cachedInput - allWritten,
    cachedInput,
    cacheWrite: allWritten - cacheWrite1h,
    cacheWrite1h,
    output: side.output,
    reasoning: side.reasoning,
    toolCalls: NO_USAGE.toolCalls,
    ...(output === undefined && total <= allInput ? OUTPUT_UNCOUNTED : undefined),
  };
  // A usage of zeros only is a placeholder for a count to come.
  return addCounts(allInput, usage.output) === 0 ? undefined : withMoreInput(usage, included.moreInput ?? 0);
}

/** The usage of a server that gives neither side: their sum, and the part of it that is known to be output. */
function unsplitUsage({ total = 0, reasoning }: IncludedCounts): Usage | undefined {
  const known = { ...NO_USAGE, output: reasoning, reasoning, outputUncounted: true as const };
  if (total > reasoning) return { ...known, unsplit: total - reasoning };
  return reasoning === 0 ? undefined : known;
}

/** The input that the total leaves, for a server that counts only its output. */
function inputFromTotal({ output = 0, total = 0, cached, written, reasoning }: IncludedCounts): number {
  const withReasoning = reasoning > output ? output + reasoning : output;
  return Math.max(0, total - withReasoning, addCounts(cached, written));
}

/**
 * Cached tokens that the input count leaves out. They are recognized if the total exceeds its parts by exactly that
 * number, or if there are more of them than input tokens.
 */
function cacheBeside({ cached, written, reasoning, output, total = 0 }: IncludedCounts, input: number): number {
  const surplus = output === undefined ? 0 : total - input - output;
  for (const part of surplus > 0 ? [cached + written, cached, written] : []) {
    if (part > 0 && (surplus === part + reasoning || (surplus === part && surplus !== reasoning))) return part;
  }
  if (cached > input) return cached + written;
  return cached + written > input ? written : 0;
}

/**
 * The output with all reasoning. Tokens that the total has beyond its parts were produced, whether the server names
 * them or not. Reasoning that exceeds the output is not part of it.
 */
function outputOf({ reasoning, reasoningBeside, total, moreInput = 0 }: IncludedCounts, input: number, output: number) {
  const surplus = (total ?? 0) - input - output;
  const unknown = Math.max(0, surplus >= moreInput ? surplus - moreInput : surplus);
  const isBeside = reasoningBeside === true || reasoning > output;
  const all = addCounts(output, Math.max(unknown, isBeside ? reasoning : 0));
  return { output: all, reasoning: Math.min(reasoning, all) };
}

function withMoreInput(usage: Usage, more: number): Usage {
  return more === 0 ? usage : { ...usage, input: addCounts(usage.input, more) };
}

/** The server's total. Undefined if one of its parts is given but not plausible: then the total is not either. */
export function plausibleTotal(total: unknown, ...parts: readonly unknown[]): number | undefined {
  for (const part of parts) {
    if (part !== undefined && part !== null && plausibleCount(part) === undefined) return undefined;
  }
  return plausibleCount(total);
}

/** The largest of several members for one count; servers that send two of them mean the same tokens. */
export function largestCount(...values: readonly unknown[]): number {
  return namedCount(...values) ?? 0;
}

/** Like `largestCount`, but undefined if there is no count at all. */
export function namedCount(...values: readonly unknown[]): number | undefined {
  let largest: number | undefined;
  for (const value of values) {
    const count = plausibleCount(value);
    // At least 0, because JSON has a negative zero.
    if (count !== undefined) largest = Math.max(largest ?? 0, count);
  }
  return largest;
}

/** Input read from a cache, under any of its names. @param details of the input. */
export function cachedCount(usage: JsonObject, details: JsonObject | undefined): number {
  return largestCount(
    details?.cached_tokens,
    usage.cached_tokens,
    usage.num_cached_tokens,
    usage.prompt_cache_hit_tokens,
    usage.cache_read_input_tokens,
  );
}

/**
 * Input written to a cache, under any of its names.
 * @param details of the input.
 * @param other one more count of the same tokens.
 */
export function writtenCounts(
  usage: JsonObject,
  details: JsonObject | undefined,
  other?: unknown,
): Pick<IncludedCounts, "written" | "written1h"> {
  const lifetimes = objectOf(details?.cache_creation) ?? objectOf(usage.cache_creation);
  const written1h = largestCount(lifetimes?.ephemeral_1h_input_tokens);
  const written = largestCount(
    details?.cache_write_tokens,
    details?.cache_creation_tokens,
    details?.cache_creation_input_tokens,
    usage.cache_creation_input_tokens,
    usage.prompt_cache_write_tokens,
    written1h + largestCount(lifetimes?.ephemeral_5m_input_tokens),
    other,
  );
  return { written, written1h };
}

/** Tool calls from an object of counts whose names end in `suffix`: `web_search_requests` counts `web_search`. */
export function toolCounts(value: unknown, suffix: string): Record<string, number> | undefined {
  const counts: JsonObject | undefined = objectOf(value);
  if (!counts) return undefined;
  const calls: Record<string, number> = {};
  let found = 0;
  for (const [name, count] of Object.entries(counts)) {
    const tool = name.endsWith(suffix) ? name.slice(0, -suffix.length) : "";
    const plausible = plausibleCount(count);
    if (!plausible || !isToolName(tool)) continue;
    calls[tool] = plausible;
    found += 1;
    if (found === TOOLS_MAX) break;
  }
  return calls;
}
