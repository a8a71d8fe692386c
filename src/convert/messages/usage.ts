/**
 * Messages usage <-> token kinds (docs/translation-rules.md rule 44). `input_tokens` excludes everything cached,
 * `output_tokens` includes thinking; docs/usage-forms.md has what servers really send.
 */

import { arrayOf, type JsonObject, objectOf, objectsIn } from "../../values/json-object.ts";
import { mergedCalls } from "../../values/tokens/tool-calls.ts";
import { addCounts, believableCount, NO_USAGE, totalInput, type Usage } from "../../values/tokens/usage.ts";
import { believableTotal, largestCount, toolCounts } from "../included-usage.ts";

/** The usage of a whole message. @returns undefined when nothing in it is a count. */
export function readUsage(value: unknown): Usage | undefined {
  const read = new MessageUsage();
  read.count(value);
  return read.usage;
}

/**
 * What the events of a message have said of its usage. Counts are snapshots of what has been used so far: a later one
 * replaces an earlier one, and only iterations are added up, which come all at once.
 */
export class MessageUsage {
  /** By the top-level members. */
  #top: Usage | undefined;
  #iterations: readonly JsonObject[] = [];
  /** What `#iterations` add up to; undefined: nobody has asked since they came. */
  #sum: IterationSum | undefined;
  /** What was told the last time; undefined: more was said since, or nobody has asked. */
  #told: Usage | undefined;
  #final = false;

  /** Reads the usage of `message_start`, whose output is only that of the beginning. */
  begin(value: unknown): void {
    const usage = namedUsage(value);
    if (!usage) return;
    this.#top = laterUsage(this.#top, usage);
    this.#told = undefined;
    if (arrayOf(usage.iterations).length > ITERATIONS_MAX) return;
    const iterations = objectsIn(usage.iterations);
    if (iterations.length === 0) return;
    this.#iterations = iterations;
    this.#sum = undefined;
  }

  /** Reads the usage of a `message_delta`, or of a whole message. */
  count(value: unknown): void {
    this.begin(value);
    const output = believableCount(namedUsage(value)?.output_tokens);
    // A 0 after a count in `message_start` means that the server left the count out; the count of the start is not
    // final.
    this.#final ||= output !== undefined && (output > 0 || !this.#top?.output);
  }

  /** Reads a `message_stop`; Bedrock counts in it, under the protocol's names or its own. */
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

  /** More has been produced: what was counted before is a snapshot. */
  produced(): void {
    this.#final = false;
  }

  /** What is known so far; the same object until more is said. */
  get usage(): Usage | undefined {
    if (this.#iterations.length === 0) return this.#top;
    this.#sum ??= sumOf(this.#iterations);
    this.#told ??= withIterations(this.#top ?? NO_USAGE, this.#sum);
    return this.#told;
  }

  /** Whether the output has been counted, and nothing was produced after that count. */
  get final(): boolean {
    return this.#final;
  }
}

/** A usage object under the protocol's names. Relays in front of chat completions leave chat's, whose input has the cache. */
function namedUsage(value: unknown): JsonObject | undefined {
  const usage = objectOf(value);
  if (!usage || believableCount(usage.input_tokens) || believableCount(usage.output_tokens)) return usage;
  const input = believableCount(usage.prompt_tokens);
  const output = believableCount(usage.completion_tokens);
  if (!input && !output) return usage;
  const inside = objectOf(usage.prompt_tokens_details)?.cached_tokens;
  const cached = Math.min(largestCount(inside, usage.cache_read_input_tokens), input ?? 0);
  return {
    ...usage,
    ...(input === undefined ? {} : { input_tokens: input - cached, cache_read_input_tokens: cached }),
    output_tokens: output,
  };
}

/** A later snapshot over an earlier one. Input of nothing, or no output, has been forgotten rather than undone. */
function laterUsage(before: Usage | undefined, usage: JsonObject): Usage | undefined {
  const input = inputOf(usage, before?.cacheWrite1h ?? 0);
  const output = believableCount(usage.output_tokens);
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
  return believableCount(objectOf(output_tokens_details)?.thinking_tokens);
}

/** Output beside the output count: more thinking than there is output, or what a total has beyond both sides. */
function hiddenBeside(usage: JsonObject, output: number): number {
  const thinking = thinkingOf(usage) ?? 0;
  const input = totalInput({ ...NO_USAGE, ...inputOf(usage, 0) });
  const total = believableTotal(usage.total_tokens, usage.input_tokens, usage.output_tokens) ?? 0;
  // Without an input count the total shows no surplus.
  const surplus = input > 0 ? total - input - output : 0;
  return Math.max(0, surplus, thinking > output ? thinking : 0);
}

type InputCounts = Pick<Usage, "input" | "cachedInput" | "cacheWrite" | "cacheWrite1h">;

/**
 * The kinds of input that are counted.
 * @param known1h writes with the long lifetime, from an earlier snapshot.
 * @returns undefined when they are nothing together.
 */
function inputOf(usage: JsonObject, known1h: number): Partial<InputCounts> | undefined {
  const input = believableCount(usage.input_tokens);
  const cachedInput = believableCount(usage.cache_read_input_tokens);
  const writes = cacheWrites(usage, known1h);
  const counted = {
    ...(input === undefined ? {} : { input }),
    ...(cachedInput === undefined ? {} : { cachedInput }),
    ...writes,
  };
  return totalInput({ ...NO_USAGE, ...counted }) === 0 ? undefined : counted;
}

/**
 * Cache writes by lifetime. A stream names the lifetimes in its first snapshot and only the sum in the last; what no lifetime
 * is named for has the short one.
 */
function cacheWrites(usage: JsonObject, known1h: number): Pick<Usage, "cacheWrite" | "cacheWrite1h"> | undefined {
  const lifetimes = objectOf(usage.cache_creation);
  const written = believableCount(usage.cache_creation_input_tokens);
  if (written === undefined && !lifetimes) return undefined;
  const oneHour = largestCount(lifetimes?.ephemeral_1h_input_tokens);
  const named = oneHour + largestCount(lifetimes?.ephemeral_5m_input_tokens);
  const all = Math.max(written ?? 0, named);
  const cacheWrite1h = Math.min(named > 0 ? oneHour : known1h, all);
  return { cacheWrite: all - cacheWrite1h, cacheWrite1h };
}

/** What the iterations of a message used together. */
interface IterationSum {
  readonly sum: Usage;
  /** The most input that one of them read. */
  readonly longestInput: number;
  /** Whether the answer is among them. */
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
 * What a message used that took several readings. The top-level counts are those of the reading that answered, so a
 * reading that summarised the conversation, advised, or was declined half-way is counted in its own entry only. All
 * entries together are the bill; a server whose top-level counts are larger has summed them up itself.
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

/** The larger of two counts of the same tokens, kind by kind; entries may leave out the lifetimes of what they wrote. */
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
 * The longest list of iterations that is believed, far above the readings that a server makes for one answer. A longer one is no
 * count, as a count beyond TOKEN_COUNT_MAX is none: what was counted beside or before it stands.
 */
export const ITERATIONS_MAX = 1_000;

/** Entries of readings whose answer is the message. */
const ANSWERS: ReadonlySet<unknown> = new Set(["message", "fallback_message"]);

/** A try that declined before it had written anything is free, where another model answered in its place. */
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

/** Writes a `usage` object for a messages client, every nullable member present (rule 44). */
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
