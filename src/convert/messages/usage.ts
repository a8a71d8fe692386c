/**
 * Converts messages usage to token kinds and back (docs/translation-rules.md rule 44). `input_tokens` excludes
 * everything cached, `output_tokens` includes thinking; docs/usage-forms.md lists what servers really send.
 */

import { arrayOf, type JsonObject, objectOf, objectsIn } from "../../values/json-object.ts";
import { mergedCalls } from "../../values/tokens/tool-calls.ts";
import { addCounts, NO_USAGE, plausibleCount, totalInput, type Usage } from "../../values/tokens/usage.ts";
import { largestCount, plausibleTotal, toolCounts } from "../included-usage.ts";

/** The usage of a whole message. @returns undefined if nothing in it is a count. */
export function readUsage(value: unknown): Usage | undefined {
  const read = new MessageUsage();
  read.count(value);
  return read.usage;
}

/**
 * The usage of a message, from its events. Counts are snapshots of what has been used so far: a later one replaces an
 * earlier one. Only iterations are added up, and these come all at once.
 */
export class MessageUsage {
  /** The count in the top-level members. */
  #top: Usage | undefined;
  #iterations: readonly JsonObject[] = [];
  /** The sum of `#iterations`; undefined: not computed since they came. */
  #sum: IterationSum | undefined;
  /** The usage that was last computed; undefined: outdated or not computed yet. */
  #latest: Usage | undefined;
  #final = false;

  /** Reads the usage of `message_start`, whose output count covers only the beginning. */
  begin(value: unknown): void {
    const usage = namedUsage(value);
    if (!usage) return;
    this.#top = laterUsage(this.#top, usage);
    this.#latest = undefined;
    if (arrayOf(usage.iterations).length > ITERATIONS_MAX) return;
    const iterations = objectsIn(usage.iterations);
    if (iterations.length === 0) return;
    this.#iterations = iterations;
    this.#sum = undefined;
  }

  /** Reads the usage of a `message_delta`, or of a whole message. */
  count(value: unknown): void {
    this.begin(value);
    const output = plausibleCount(namedUsage(value)?.output_tokens);
    // A 0 after a count in `message_start` means that the server left the count out; the count at the start is not
    // final.
    this.#final ||= output !== undefined && (output > 0 || !this.#top?.output);
  }

  /** Reads a `message_stop`. Bedrock puts its count there, under the protocol's names or its own. */
  countLast(event: JsonObject): void {
    this.count(event.usage);
    const metrics = objectOf(event["amazon-bedrock-invocationMetrics"]);
    if (this.#final || !metrics) return;
    this.count({
      input_tokens: metrics.inputTokenCount,
      output_tokens: metrics.outputTokenCount,
      cache_read_input_tokens: metrics.cacheReadInputTokenCount,
      cache_creation_input_tokens: metrics.cacheWriteInputTokenCount,
    });
  }

  /** More output was produced, so earlier counts are snapshots. */
  produced(): void {
    this.#final = false;
  }

  /** The usage so far; the same object until more is known. */
  get usage(): Usage | undefined {
    if (this.#iterations.length === 0) return this.#top;
    this.#sum ??= sumOf(this.#iterations);
    this.#latest ??= withIterations(this.#top ?? NO_USAGE, this.#sum);
    return this.#latest;
  }

  /** Whether the output has been counted, and nothing was produced after that count. */
  get final(): boolean {
    return this.#final;
  }
}

/**
 * A usage object under the protocol's names. Relays in front of chat completions servers send chat's names, and their
 * input includes the cache.
 */
function namedUsage(value: unknown): JsonObject | undefined {
  const usage = objectOf(value);
  if (!usage || plausibleCount(usage.input_tokens) || plausibleCount(usage.output_tokens)) return usage;
  const input = plausibleCount(usage.prompt_tokens);
  const output = plausibleCount(usage.completion_tokens);
  if (!input && !output) return usage;
  const inside = objectOf(usage.prompt_tokens_details)?.cached_tokens;
  const cached = Math.min(largestCount(inside, usage.cache_read_input_tokens), input ?? 0);
  return {
    ...usage,
    ...(input === undefined ? {} : { input_tokens: input - cached, cache_read_input_tokens: cached }),
    output_tokens: output,
  };
}

/**
 * A later snapshot replaces an earlier one. Input that is 0, or missing output, was left out by the server, so the
 * earlier count is kept.
 */
function laterUsage(before: Usage | undefined, usage: JsonObject): Usage | undefined {
  const input = inputOf(usage, before?.cacheWrite1h ?? 0);
  const output = plausibleCount(usage.output_tokens);
  const hidden = output === undefined ? 0 : hiddenBeside(usage, output);
  const toolCalls = toolCounts(usage.server_tool_use, "_requests");
  if (!input && output === undefined && !toolCalls) return before;
  const { outputUncounted, ...base } = before ?? { ...NO_USAGE, outputUncounted: true as const };
  const allOutput = addCounts(output ?? 0, hidden) || base.output;
  return {
    ...base,
    ...input,
    output: allOutput,
    reasoning: Math.min(thinkingOf(usage) ?? base.reasoning, allOutput),
    toolCalls: toolCalls ? mergedCalls(base.toolCalls, toolCalls) : base.toolCalls,
    ...(outputUncounted && output === undefined ? { outputUncounted } : {}),
  };
}

function thinkingOf({ output_tokens_details }: JsonObject): number | undefined {
  return plausibleCount(objectOf(output_tokens_details)?.thinking_tokens);
}

/** Output that the output count leaves out: thinking that exceeds it, or what the total has beyond both sides. */
function hiddenBeside(usage: JsonObject, output: number): number {
  const thinking = thinkingOf(usage) ?? 0;
  const input = totalInput({ ...NO_USAGE, ...inputOf(usage, 0) });
  const total = plausibleTotal(usage.total_tokens, usage.input_tokens, usage.output_tokens) ?? 0;
  // Without an input count, the total shows no surplus.
  const surplus = input > 0 ? total - input - output : 0;
  return Math.max(0, surplus, thinking > output ? thinking : 0);
}

type InputCounts = Pick<Usage, "input" | "cachedInput" | "cacheWrite" | "cacheWrite1h">;

/**
 * The counted kinds of input.
 * @param known1h writes with the long lifetime, from an earlier snapshot.
 * @returns undefined if their sum is 0.
 */
function inputOf(usage: JsonObject, known1h: number): Partial<InputCounts> | undefined {
  const input = plausibleCount(usage.input_tokens);
  const cachedInput = plausibleCount(usage.cache_read_input_tokens);
  const writes = cacheWrites(usage, known1h);
  const counted = {
    ...(input === undefined ? {} : { input }),
    ...(cachedInput === undefined ? {} : { cachedInput }),
    ...writes,
  };
  return totalInput({ ...NO_USAGE, ...counted }) === 0 ? undefined : counted;
}

/**
 * Cache writes by lifetime. A stream names the lifetimes in its first snapshot, and only the sum in the last. Writes
 * without a named lifetime count as short.
 */
function cacheWrites(usage: JsonObject, known1h: number): Pick<Usage, "cacheWrite" | "cacheWrite1h"> | undefined {
  const lifetimes = objectOf(usage.cache_creation);
  const written = plausibleCount(usage.cache_creation_input_tokens);
  if (written === undefined && !lifetimes) return undefined;
  const oneHour = largestCount(lifetimes?.ephemeral_1h_input_tokens);
  const named = oneHour + largestCount(lifetimes?.ephemeral_5m_input_tokens);
  const all = Math.max(written ?? 0, named);
  const cacheWrite1h = Math.min(named > 0 ? oneHour : known1h, all);
  return { cacheWrite: all - cacheWrite1h, cacheWrite1h };
}

/** The usage of all iterations of a message. */
interface IterationSum {
  readonly sum: Usage;
  /** The most input that one of them read. */
  readonly longestInput: number;
  /** Whether one of them produced the answer. */
  readonly isAnswerListed: boolean;
}

function sumOf(iterations: readonly JsonObject[]): IterationSum {
  const isFallback = iterations.some(({ type }) => type === "fallback_message");
  let sum = NO_USAGE;
  let longestInput = 0;
  let isAnswerListed = false;
  for (const entry of iterations) {
    if (isFallback && isFreeDecline(entry)) continue;
    const usage = laterUsage(undefined, entry) ?? NO_USAGE;
    sum = added(sum, usage);
    longestInput = Math.max(longestInput, addCounts(totalInput(usage)));
    isAnswerListed ||= ANSWERS.has(entry.type);
  }
  return { sum, longestInput, isAnswerListed };
}

/**
 * The usage of a message that took several iterations. The top-level counts are those of the iteration that answered.
 * An iteration that summarized the conversation, advised, or was declined half-way is counted only in its own entry.
 * The charge is the sum of all entries. If the top-level counts are larger, the server has already added them up.
 */
function withIterations(top: Usage, { sum: listed, longestInput, isAnswerListed }: IterationSum): Usage {
  const sum = isAnswerListed ? listed : added(listed, top);
  const output = Math.max(top.output, sum.output);
  return {
    ...inputOfBoth(top, sum),
    output,
    reasoning: Math.min(Math.max(top.reasoning, sum.reasoning), output),
    toolCalls: top.toolCalls,
    longestInput: isAnswerListed ? longestInput : Math.max(longestInput, addCounts(totalInput(top))),
  };
}

/** The larger of two counts of the same tokens, kind by kind; entries may leave out the lifetimes of cache writes. */
function inputOfBoth(top: Usage, sum: Usage): InputCounts {
  const written = Math.max(top.cacheWrite + top.cacheWrite1h, sum.cacheWrite + sum.cacheWrite1h);
  const cacheWrite1h = Math.max(top.cacheWrite1h, sum.cacheWrite1h);
  return {
    input: Math.max(top.input, sum.input),
    cachedInput: Math.max(top.cachedInput, sum.cachedInput),
    cacheWrite: written - cacheWrite1h,
    cacheWrite1h,
  };
}

/**
 * The longest list of iterations that is plausible, far above the number that a server makes for one answer. A longer
 * one is ignored, like a count above TOKEN_COUNT_MAX; the counts next to it or before it stay.
 */
export const ITERATIONS_MAX = 1_000;

/** Types of iterations that produce the answer. */
const ANSWERS: ReadonlySet<unknown> = new Set(["message", "fallback_message"]);

/** An attempt that declined before it wrote anything is free if another model answered in its place. */
function isFreeDecline({ type, output_tokens }: JsonObject): boolean {
  return type === "message" && output_tokens === 0;
}

function added(one: Usage, other: Usage): Usage {
  return {
    ...NO_USAGE,
    input: addCounts(one.input, other.input),
    cachedInput: addCounts(one.cachedInput, other.cachedInput),
    cacheWrite: addCounts(one.cacheWrite, other.cacheWrite),
    cacheWrite1h: addCounts(one.cacheWrite1h, other.cacheWrite1h),
    output: addCounts(one.output, other.output),
    reasoning: addCounts(one.reasoning, other.reasoning),
  };
}

/** Writes a `usage` object for a messages client, with every nullable member (rule 44). */
export function writeUsage(usage: Usage, tier: string | null = null): JsonObject {
  return {
    input_tokens: usage.input,
    cache_creation_input_tokens: usage.cacheWrite + usage.cacheWrite1h,
    cache_read_input_tokens: usage.cachedInput,
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWrite,
      ephemeral_1h_input_tokens: usage.cacheWrite1h,
    },
    output_tokens: usage.output,
    output_tokens_details: { thinking_tokens: usage.reasoning },
    server_tool_use: null,
    service_tier: tier,
  };
}
