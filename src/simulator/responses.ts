/** Responses: a reply as one `response` object or as its numbered events. */

import type { Frame, StreamShape } from "./frame.ts";
import { responseId } from "./ids.ts";
import { inputWithCache, type SimulatedReply, stopWord, takeTurns } from "./reply.ts";
import { type OutputItem, outputItems, typed } from "./responses-items.ts";

/** The whole reply. */
export function responsesBody(reply: SimulatedReply): object {
  return finalResponse(reply, outputItems(reply));
}

/** The streamed reply: created, in_progress, the items, and the terminal event with the full output. */
export function responsesStream(reply: SimulatedReply): StreamShape {
  const items = outputItems(reply);
  const final = finalResponse(reply, items);
  const opening = responseObject(reply, { status: "in_progress", output: [], usage: null });
  const terminal = final.status === "completed" || final.status === "failed" ? final.status : "incomplete";
  return {
    frames: [
      typed("response.created", { response: opening }),
      typed("response.in_progress", { response: opening }),
      ...itemFrames(reply, items),
      typed(`response.${terminal}`, { response: final }),
    ],
    numbered: true,
    ping: () => typed("keepalive", {}),
    padding: (bytes) => typed("keepalive", { padding: "x".repeat(bytes) }),
    failure: ({ code = "server_error", message = "The simulated server had an error.", failed = false }) =>
      failed
        ? [typed("response.failed", { response: failedResponse(reply, code, message) })]
        : [typed("error", { code, message, param: null })],
  };
}

/** Items in sequence; with `interleave`, the deltas of tool calls alternate. */
function itemFrames(reply: SimulatedReply, items: readonly OutputItem[]): Frame[] {
  const frames = items.map((item, index) => ({ isTool: item.isTool, frames: item.frames(index) }));
  if (!reply.behavior.interleave) return frames.flatMap((one) => one.frames);
  const sequential = frames.filter((one) => !one.isTool).flatMap((one) => one.frames);
  return [...sequential, ...takeTurns(frames.filter((one) => one.isTool).map((one) => one.frames))];
}

function finalResponse(reply: SimulatedReply, items: readonly OutputItem[]): Readonly<Record<string, unknown>> {
  const output = items.map(({ item }) => item);
  const usage = reply.behavior.noUsage ? null : responsesUsage(reply);
  if (reply.stop === "failed") return { ...failedResponse(reply, "server_error", "Simulated failure."), output, usage };
  const word = stopWord(reply.stop, "responses");
  const ending =
    word === "completed"
      ? { status: "completed", completed_at: reply.createdS }
      : { status: "incomplete", incomplete_details: { reason: word } };
  return responseObject(reply, { ...ending, output, usage });
}

function failedResponse(reply: SimulatedReply, code: string, message: string): Readonly<Record<string, unknown>> {
  return responseObject(reply, { status: "failed", error: { code, message }, output: [], usage: null });
}

/** Responses includes cached tokens in the input and reasoning in the output. */
function responsesUsage({ usage }: SimulatedReply): object {
  return {
    input_tokens: inputWithCache(usage),
    input_tokens_details: { cached_tokens: usage.cached, cache_write_tokens: usage.cacheWrite + usage.cacheWrite1h },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: inputWithCache(usage) + usage.output,
  };
}

/** The object around the output; like the real one, it repeats the request's settings. */
function responseObject(
  reply: SimulatedReply,
  fields: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const { request } = reply;
  return {
    id: responseId(reply.seed),
    object: "response",
    created_at: reply.createdS,
    completed_at: null,
    status: "in_progress",
    background: false,
    error: null,
    incomplete_details: null,
    instructions: request.instructions ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    max_tool_calls: request.max_tool_calls ?? null,
    metadata: request.metadata ?? {},
    model: reply.model,
    output: [],
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: request.prompt_cache_key ?? null,
    reasoning: request.reasoning ?? { effort: null, summary: null },
    safety_identifier: request.safety_identifier ?? null,
    service_tier: "default",
    store: request.store ?? true,
    temperature: request.temperature ?? 1,
    text: request.text ?? { format: { type: "text" } },
    tool_choice: request.tool_choice ?? "auto",
    tools: request.tools ?? [],
    top_logprobs: 0,
    top_p: request.top_p ?? 1,
    truncation: request.truncation ?? "disabled",
    usage: null,
    user: request.user ?? null,
    ...fields,
  };
}
