/** Messages usage <-> token kinds (protocols.md 1.2.3, 2.0.6). `input_tokens` excludes everything cached. */
import { believableCount, NO_USAGE, type Usage } from "../../values/tokens.ts";
import { type JsonObject, objectOf } from "../json-object.ts";

/**
 * Reads a `usage` object over what an earlier event said: counts in a stream are cumulative snapshots, so a later
 * believable value replaces and a missing one keeps (2.0.6).
 * @returns `before` when the value holds no believable count, or when no event has counted the input yet.
 */
export function readUsage(value: unknown, before?: Usage): Usage | undefined {
  const usage = objectOf(value);
  if (!usage) return before;
  const input = believableCount(usage.input_tokens);
  const output = believableCount(usage.output_tokens);
  const cached = believableCount(usage.cache_read_input_tokens);
  const written = believableCount(usage.cache_creation_input_tokens);
  if (input === undefined && output === undefined && cached === undefined && written === undefined) return before;
  if (input === undefined && before === undefined) return undefined;
  const base = before ?? NO_USAGE;
  const outputTokens = output ?? base.output;
  const details = objectOf(usage.output_tokens_details);
  return {
    input: input ?? base.input,
    cachedInput: cached ?? base.cachedInput,
    ...cacheWrites(usage, written, base),
    output: outputTokens,
    reasoning: Math.min(believableCount(details?.thinking_tokens) ?? base.reasoning, outputTokens),
    toolCalls: toolCalls(usage.server_tool_use) ?? base.toolCalls,
  };
}

/** Whether a `usage` object counts the output: without it a snapshot from the stream's beginning is not the bill. */
export function countsOutput(value: unknown): boolean {
  return believableCount(objectOf(value)?.output_tokens) !== undefined;
}

function cacheWrites(usage: JsonObject, written: number | undefined, base: Usage) {
  const split = objectOf(usage.cache_creation);
  const oneHour = believableCount(split?.ephemeral_1h_input_tokens);
  const total = written ?? base.cacheWrite + base.cacheWrite1h;
  const cacheWrite1h = Math.min(oneHour ?? base.cacheWrite1h, total);
  return { cacheWrite: total - cacheWrite1h, cacheWrite1h };
}

/** Hosted tool calls by price name: `web_search_requests` is `web_search`. */
function toolCalls(value: unknown): Record<string, number> | undefined {
  const counts = objectOf(value);
  if (!counts) return undefined;
  const calls: Record<string, number> = {};
  for (const [name, count] of Object.entries(counts)) {
    const believed = believableCount(count);
    if (believed && name.endsWith("_requests")) calls[name.slice(0, -"_requests".length)] = believed;
  }
  return calls;
}

/** Writes a `usage` object for a messages client, every nullable member present (MC.r6). */
export function writeUsage(usage: Usage): JsonObject {
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
    service_tier: null,
  };
}
