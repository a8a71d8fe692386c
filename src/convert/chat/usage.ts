/** Chat completions usage <-> token kinds (protocols.md 1.1.2, 2.0.6). `prompt_tokens` includes everything cached. */
import { believableCount, NO_USAGE, type Usage } from "../../values/tokens.ts";
import { type JsonObject, objectOf } from "../json-object.ts";

/**
 * Reads a `usage` object. A count that cannot be believed is treated as absent (reliability rows C10, 64).
 * @returns undefined unless both sides of the count are there: half a count would bill the other half as nothing.
 */
export function readUsage(value: unknown): Usage | undefined {
  const usage = objectOf(value);
  if (!usage) return undefined;
  const prompt = believableCount(usage.prompt_tokens);
  const completion = believableCount(usage.completion_tokens);
  if (prompt === undefined || completion === undefined) return undefined;
  const inputDetails = objectOf(usage.prompt_tokens_details);
  const outputDetails = objectOf(usage.completion_tokens_details);
  return splitIncludedCache({
    input: prompt,
    cached: believableCount(inputDetails?.cached_tokens) ?? believableCount(usage.prompt_cache_hit_tokens) ?? 0,
    written: believableCount(inputDetails?.cache_write_tokens) ?? 0,
    written1h: 0,
    output: completion,
    reasoning: believableCount(outputDetails?.reasoning_tokens) ?? 0,
  });
}

/** Takes what was cached out of an input count that includes it, so that no token is counted twice. */
export function splitIncludedCache(counts: {
  input: number;
  cached: number;
  written: number;
  written1h: number;
  output: number;
  reasoning: number;
}): Usage {
  const cachedInput = Math.min(counts.cached, counts.input);
  const written = Math.min(counts.written, counts.input - cachedInput);
  const cacheWrite1h = Math.min(counts.written1h, written);
  return {
    ...NO_USAGE,
    input: counts.input - cachedInput - written,
    cachedInput,
    cacheWrite: written - cacheWrite1h,
    cacheWrite1h,
    output: counts.output,
    reasoning: Math.min(counts.reasoning, counts.output),
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
