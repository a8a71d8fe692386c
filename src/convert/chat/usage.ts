/**
 * Chat completions usage <-> token kinds (docs/translation-rules.md rule 44). `prompt_tokens` is meant to include
 * everything cached, `completion_tokens` all reasoning; docs/usage-forms.md has what servers really send.
 */

import { type JsonObject, objectOf, objectsIn } from "../../values/json-object.ts";
import { addCounts, believableCount, totalInput, type Usage } from "../../values/tokens/usage.ts";
import {
  believableTotal,
  largestCount,
  mergedCalls,
  namedCount,
  toolCounts,
  usageOfIncluded,
} from "../included-usage.ts";

/**
 * Reads a `usage` object. A count that cannot be believed is treated as absent (docs/failure-model.md rows C10 and 64).
 * @returns undefined when it counts nothing; a side that is not counted is 0, for `completedUsage` to fill in.
 */
export function readUsage(value: unknown): Usage | undefined {
  const usage = objectOf(value);
  if (!usage) return undefined;
  const details = inputDetails(usage);
  const lifetimes = objectOf(details?.cache_creation) ?? objectOf(usage.cache_creation);
  const written1h = largestCount(lifetimes?.ephemeral_1h_input_tokens);
  const citations = believableCount(usage.citation_tokens);
  const counted = usageOfIncluded({
    // Servers of several protocols leave another one's names, alone or beside zeros.
    input: namedCount(usage.prompt_tokens, usage.input_tokens) ?? hitAndMiss(usage),
    output: namedCount(usage.completion_tokens, usage.output_tokens),
    total: believableTotal(usage.total_tokens, usage.prompt_tokens, usage.completion_tokens),
    cached: largestCount(
      details?.cached_tokens,
      usage.cached_tokens,
      usage.num_cached_tokens,
      usage.prompt_cache_hit_tokens,
      usage.cache_read_input_tokens,
    ),
    written: largestCount(
      details?.cache_write_tokens,
      details?.cache_creation_tokens,
      details?.cache_creation_input_tokens,
      usage.cache_creation_input_tokens,
      usage.prompt_cache_write_tokens,
      written1h + largestCount(lifetimes?.ephemeral_5m_input_tokens),
    ),
    written1h,
    reasoning: largestCount(
      objectOf(usage.completion_tokens_details)?.reasoning_tokens,
      objectOf(usage.output_tokens_details)?.reasoning_tokens,
      usage.reasoning_tokens,
    ),
    reasoningBeside: citations !== undefined,
    moreInput: citations ?? 0,
  });
  return counted && { ...counted, toolCalls: toolCalls(usage) };
}

/** One server spells the member without its second s. */
function inputDetails(usage: JsonObject): JsonObject | undefined {
  const { prompt_tokens_details, prompt_token_details, input_tokens_details } = usage;
  return objectOf(prompt_tokens_details) ?? objectOf(prompt_token_details) ?? objectOf(input_tokens_details);
}

/** All input, from a server that counts cached and uncached separately and gives no sum. */
function hitAndMiss(usage: JsonObject): number | undefined {
  const hit = believableCount(usage.prompt_cache_hit_tokens);
  const miss = believableCount(usage.prompt_cache_miss_tokens);
  return hit === undefined || miss === undefined ? undefined : hit + miss;
}

function toolCalls(usage: JsonObject): Readonly<Record<string, number>> {
  const searches = believableCount(usage.num_search_queries);
  const sources = believableCount(usage.num_sources_used);
  return mergedCalls(
    {
      ...toolCounts(usage.server_tool_use, "_requests"),
      ...toolCounts(usage.server_side_tool_usage_details, "_calls"),
    },
    { ...(searches ? { web_search: searches } : {}), ...(sources ? { live_search: sources } : {}) },
  );
}

/**
 * The usage of a whole reply, or of a chunk of a stream beside its choices: under its own name, inside a vendor's member,
 * or as the figures of a local server's clock.
 */
export function readReplyUsage(reply: JsonObject): Usage | undefined {
  return readUsage(reply.usage) ?? readUsage(objectOf(reply.x_groq)?.usage) ?? readTimings(reply.timings);
}

/** The usage of a whole reply, from any of the places where servers put it. */
export function readWholeUsage(reply: JsonObject): Usage | undefined {
  const choices = objectsIn(reply.choices);
  const usage = readReplyUsage(reply) ?? joinedUsage(choices.flatMap((choice) => readUsage(choice.usage) ?? []));
  const cited = choices.some((choice) => citesTheWeb(objectOf(choice.message)));
  return usage && withSearch(usage, cited);
}

/** Whether a message or delta names a source on the web: it was searched for. */
export function citesTheWeb(message: JsonObject | undefined): boolean {
  return objectsIn(message?.annotations).some(({ type }) => type === "url_citation");
}

/** A search that left its sources in the reply and no count in the usage was one search. */
export function withSearch(usage: Usage, cited: boolean): Usage {
  if (!cited || usage.toolCalls.web_search) return usage;
  return { ...usage, toolCalls: { ...usage.toolCalls, web_search: 1 } };
}

/** llama.cpp: tokens evaluated, tokens that its cache had, tokens written. */
function readTimings(value: unknown): Usage | undefined {
  const timings = objectOf(value);
  const evaluated = believableCount(timings?.prompt_n);
  const written = believableCount(timings?.predicted_n);
  if (evaluated === undefined || written === undefined) return undefined;
  const cached = largestCount(timings?.cache_n);
  const input = evaluated + cached;
  return usageOfIncluded({ input, output: written, total: undefined, cached, written: 0, written1h: 0, reasoning: 0 });
}

/**
 * The usage of several choices together: their input was read once, their outputs add up.
 * @returns undefined when none of them has been counted.
 */
export function joinedUsage(choices: Iterable<Usage>): Usage | undefined {
  let joined: Usage | undefined;
  for (const usage of choices) joined = joined ? join(joined, usage) : usage;
  return joined;
}

function join(one: Usage, other: Usage): Usage {
  return {
    ...(totalInput(one) >= totalInput(other) ? one : other),
    output: addCounts(one.output, other.output),
    reasoning: addCounts(one.reasoning, other.reasoning),
    toolCalls: mergedCalls(one.toolCalls, other.toolCalls),
  };
}

/** Writes a `usage` object for a chat client. */
export function writeUsage(usage: Usage): JsonObject {
  const cacheWrite = usage.cacheWrite + usage.cacheWrite1h;
  const prompt = usage.input + usage.cachedInput + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cachedInput, cache_write_tokens: cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}
