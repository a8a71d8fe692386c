/** Chat completions: a reply as one `chat.completion` or as `chat.completion.chunk`s. */

import { object } from "./conversation.ts";
import type { Frame, StreamShape } from "./frame.ts";
import { idFrom } from "./ids.ts";
import {
  deltas,
  inputWithCache,
  paddingFor,
  type SimulatedReply,
  stopWord,
  type ToolCall,
  takeTurns,
} from "./reply.ts";

type Delta = Readonly<Record<string, unknown>>;

/** The whole reply. */
export function chatBody(reply: SimulatedReply): object {
  const { usage } = chatUsage(reply);
  return {
    id: idFrom(reply.seed, "chatcmpl-"),
    object: "chat.completion",
    created: reply.createdS,
    model: reply.model,
    choices: choiceIndexes(reply).map((index) => ({
      index,
      message: wholeMessage(reply, index),
      logprobs: null,
      finish_reason: stopWord(reply.stop, "chat"),
    })),
    ...(usage ? { usage } : {}),
    service_tier: "default",
    system_fingerprint: "fp_simulation",
  };
}

/** The streamed reply: first chunk, deltas, last chunk of each choice, usage if the request asks for it, `[DONE]`. */
export function chatStream(reply: SimulatedReply): StreamShape {
  const chunk = chunkMaker(reply);
  const { usage } = chatUsage(reply);
  const wantsUsage = object(reply.request.stream_options).include_usage === true && usage !== undefined;
  const every = reply.behavior.usageOnEveryChunk && usage ? { usage } : wantsUsage ? { usage: null } : {};
  const choice = (index: number, delta: Delta, finishReason: string | null = null): Frame => {
    const padding = reply.behavior.obfuscation ? { obfuscation: paddingFor(JSON.stringify(delta)) } : {};
    return chunk([{ index, delta, logprobs: null, finish_reason: finishReason }], { ...every, ...padding });
  };
  const perChoice = choiceIndexes(reply).map((index) => [
    ...contentDeltas(reply, index).map((delta) => choice(index, delta)),
    choice(index, {}, stopWord(reply.stop, "chat")),
  ]);
  return {
    frames: [...takeTurns(perChoice), ...(wantsUsage ? [chunk([], { usage })] : []), { text: "[DONE]" }],
    numbered: false,
    ping: () => ({ comment: "ping" }),
    padding: (bytes) => chunk([], { padding: "x".repeat(bytes) }),
    failure: ({ type = "server_error", code = null, message = "The simulated server had an error." }: FailureText) => [
      { json: { error: { message, type, param: null, code } } },
    ],
  };
}

interface FailureText {
  readonly type?: string;
  readonly code?: string | null;
  readonly message?: string;
}

/** Chat includes cached tokens in the prompt and reasoning in the completion. */
function chatUsage({ usage, behavior }: SimulatedReply): { usage?: object } {
  if (behavior.noUsage) return {};
  return {
    usage: {
      prompt_tokens: inputWithCache(usage),
      completion_tokens: usage.output,
      total_tokens: inputWithCache(usage) + usage.output,
      prompt_tokens_details: {
        cached_tokens: usage.cached,
        cache_write_tokens: usage.cacheWrite + usage.cacheWrite1h,
        audio_tokens: 0,
      },
      completion_tokens_details: {
        reasoning_tokens: usage.reasoning,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
  };
}

function choiceIndexes(reply: SimulatedReply): number[] {
  return Array.from({ length: reply.conversation.choices }, (_, index) => index);
}

function joined(reply: SimulatedReply, kind: "text" | "thinking" | "refusal"): string | undefined {
  const texts = reply.parts.filter((part) => part.kind === kind).map((part) => part.text);
  return texts.length === 0 ? undefined : texts.join("");
}

function toolCalls(reply: SimulatedReply): readonly ToolCall[] {
  return reply.parts.filter((part) => part.kind === "tool");
}

function wholeMessage(reply: SimulatedReply, index: number): object {
  const tools = toolCalls(reply);
  const thinking = joined(reply, "thinking");
  return {
    role: "assistant",
    content: joined(reply, "text") ?? null,
    refusal: joined(reply, "refusal") ?? null,
    ...(thinking === undefined ? {} : { reasoning_content: thinking }),
    annotations: [],
    ...reply.behavior.extra,
    ...(tools.length === 0
      ? {}
      : { tool_calls: tools.map((tool) => ({ ...opening(tool, index), ...callBody(tool) })) }),
  };
}

function opening(tool: ToolCall, index: number): { id: string; type: string } {
  return { id: index === 0 ? tool.id : `${tool.id}_${index}`, type: tool.custom ? "custom" : "function" };
}

function callBody(tool: ToolCall, text = tool.text): object {
  if (tool.custom) return { custom: { name: tool.name, input: text } };
  return { function: { name: tool.name, arguments: text } };
}

function contentDeltas(reply: SimulatedReply, index: number): Delta[] {
  const pieces = (kind: "text" | "thinking" | "refusal") => deltas(joined(reply, kind) ?? "", reply.behavior);
  const isSilent = joined(reply, "text") === undefined;
  const calls = toolCalls(reply).map((tool, i) => toolDeltas(reply, tool, i, index));
  return [
    { role: "assistant", content: isSilent ? null : "", refusal: null },
    ...pieces("thinking").map((piece) => ({ reasoning_content: piece })),
    ...pieces("text").map((piece) => ({ content: piece })),
    ...pieces("refusal").map((piece) => ({ refusal: piece })),
    ...(reply.behavior.interleave ? takeTurns(calls) : calls.flat()),
    ...(reply.behavior.extra ? [reply.behavior.extra] : []),
  ];
}

function toolDeltas(reply: SimulatedReply, tool: ToolCall, position: number, index: number): Delta[] {
  const first = { index: position, ...opening(tool, index), ...callBody(tool, "") };
  const rest = deltas(tool.text, reply.behavior).map((piece) => ({
    index: position,
    ...(tool.custom ? { custom: { input: piece } } : { function: { arguments: piece } }),
  }));
  return [first, ...rest].map((call) => ({ tool_calls: [call] }));
}

function chunkMaker(reply: SimulatedReply): (choices: readonly object[], rest: object) => Frame {
  const head = {
    id: idFrom(reply.seed, "chatcmpl-"),
    object: "chat.completion.chunk",
    created: reply.createdS,
    model: reply.model,
    service_tier: "default",
    system_fingerprint: "fp_simulation",
  };
  return (choices, rest) => ({ json: { ...head, choices, ...rest } });
}
