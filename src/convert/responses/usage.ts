/** Responses usage <-> token kinds (protocols.md 1.3.2, 2.0.6). `input_tokens` includes everything cached. */

import { believableCount, type Usage } from "../../values/tokens.ts";
import { splitIncludedCache } from "../chat/usage.ts";
import { arrayOf, type JsonObject, objectOf } from "../json-object.ts";

/**
 * Reads the usage of a response object, hosted tool calls counted from its output items.
 * @returns undefined unless both sides of the count are believable: half a count would bill the other half as nothing.
 */
export function readUsage(response: JsonObject): Usage | undefined {
  const usage = objectOf(response.usage);
  if (!usage) return undefined;
  const input = believableCount(usage.input_tokens);
  const output = believableCount(usage.output_tokens);
  if (input === undefined || output === undefined) return undefined;
  const inputDetails = objectOf(usage.input_tokens_details);
  const outputDetails = objectOf(usage.output_tokens_details);
  return {
    ...splitIncludedCache({
      input,
      cached: believableCount(inputDetails?.cached_tokens) ?? 0,
      written: believableCount(inputDetails?.cache_write_tokens) ?? 0,
      written1h: 0,
      output,
      reasoning: believableCount(outputDetails?.reasoning_tokens) ?? 0,
    }),
    toolCalls: hostedCalls(response.output),
  };
}

const HOSTED_CALL = /^(web_search|file_search|code_interpreter|image_generation|computer|mcp)_call$/;

function hostedCalls(output: unknown): Record<string, number> {
  const calls: Record<string, number> = {};
  for (const item of arrayOf(output)) {
    const tool = HOSTED_CALL.exec(String(objectOf(item)?.type))?.[1];
    if (tool) calls[tool] = (calls[tool] ?? 0) + 1;
  }
  return calls;
}

/** Writes a `usage` object for a responses client; Codex needs all five members (RC.r5). */
export function writeUsage(usage: Usage): JsonObject {
  const cacheWrite = usage.cacheWrite + usage.cacheWrite1h;
  const input = usage.input + usage.cachedInput + cacheWrite;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cachedInput, cache_write_tokens: cacheWrite },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: input + usage.output,
  };
}
