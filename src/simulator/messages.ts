/** Anthropic messages: a reply as one `message`, or as its events, block by block. */

import { object } from "./conversation.ts";
import type { Frame, StreamShape } from "./frame.ts";
import { idFrom, opaque } from "./ids.ts";
import { deltas, type Part, type SimulatedReply, stopWord, type ToolCall } from "./reply.ts";

/** The whole reply. */
export function messagesBody(reply: SimulatedReply): object {
  return {
    ...head(reply),
    content: [...blocksOf(reply).map((part, i) => wholeBlock(reply, part, i)), ...extraBlocks(reply)],
    ...ending(reply),
    ...usageMember(reply, reply.usage.output, true),
  };
}

/** The streamed reply: message_start, the blocks in sequence, message_delta, message_stop. */
export function messagesStream(reply: SimulatedReply): StreamShape {
  const start = {
    ...head(reply),
    content: [],
    ...NO_ENDING,
    ...usageMember(reply, Math.min(1, reply.usage.output), false),
  };
  return {
    frames: [
      named({ type: "message_start", message: start }),
      ...blocksOf(reply).flatMap((part, i) => blockFrames(reply, part, i)),
      ...extraBlocks(reply).flatMap((block, i) => extraFrames(block, blocksOf(reply).length + i)),
      named({ type: "message_delta", delta: { ...ending(reply), container: null }, ...deltaUsage(reply) }),
      named({ type: "message_stop" }),
    ],
    numbered: false,
    ping: () => named({ type: "ping" }),
    padding: (bytes) => named({ type: "ping", padding: "x".repeat(bytes) }),
    failure: ({ type = "overloaded_error", message = "Overloaded (simulated)." }) => [
      named({ type: "error", error: { type, message }, request_id: idFrom(reply.seed, "req_") }),
    ],
  };
}

const NO_ENDING = { stop_reason: null, stop_sequence: null, stop_details: null };

function named(json: { readonly type: string } & Readonly<Record<string, unknown>>): Frame {
  return { event: json.type, json };
}

function head(reply: SimulatedReply): Readonly<Record<string, unknown>> {
  return {
    id: idFrom(reply.seed, "msg_"),
    type: "message",
    role: "assistant",
    model: reply.model,
    container: null,
    diagnostics: null,
  };
}

/** Messages has no block for a refusal; its text becomes the explanation. */
function blocksOf(reply: SimulatedReply): readonly Part[] {
  return reply.parts.filter((part) => part.kind !== "refusal");
}

function ending(reply: SimulatedReply): object {
  const reason = stopWord(reply.stop, "messages");
  const explanation = reply.parts.find((part) => part.kind === "refusal")?.text ?? null;
  const details = reason === "refusal" ? { type: "refusal", category: null, explanation } : null;
  return { stop_reason: reason, stop_sequence: reply.stopSequence, stop_details: details };
}

/** Messages counts cached tokens separately from the input. */
function usageMember(reply: SimulatedReply, output: number, isFinal: boolean): { usage?: object } {
  if (reply.behavior.noUsage) return {};
  const { input, cached, cacheWrite, cacheWrite1h, reasoning } = reply.usage;
  return {
    usage: {
      input_tokens: input,
      cache_creation_input_tokens: cacheWrite + cacheWrite1h,
      cache_read_input_tokens: cached,
      cache_creation: { ephemeral_5m_input_tokens: cacheWrite, ephemeral_1h_input_tokens: cacheWrite1h },
      output_tokens: output,
      output_tokens_details: isFinal ? { thinking_tokens: reasoning } : null,
      server_tool_use: null,
      service_tier: "standard",
      speed: "standard",
      inference_geo: null,
    },
  };
}

/**
 * The last event repeats the counts as totals of the whole message; they replace the earlier ones and are never added.
 */
function deltaUsage(reply: SimulatedReply): { usage?: object } {
  if (reply.behavior.noUsage) return {};
  const { input, cached, cacheWrite, cacheWrite1h, output, reasoning } = reply.usage;
  return {
    usage: {
      input_tokens: input,
      cache_creation_input_tokens: cacheWrite + cacheWrite1h,
      cache_read_input_tokens: cached,
      output_tokens: output,
      output_tokens_details: { thinking_tokens: reasoning },
      server_tool_use: null,
    },
  };
}

function wholeBlock(reply: SimulatedReply, part: Part, index: number): object {
  if (part.kind === "tool") return { ...toolBlock(part), input: toolInput(part) };
  if (part.kind === "redacted") return { type: "redacted_thinking", data: part.text };
  if (part.kind === "thinking") {
    return { type: "thinking", thinking: shownThinking(reply, part.text), signature: signature(reply, index) };
  }
  return { type: "text", text: part.text, citations: null };
}

function blockFrames(reply: SimulatedReply, part: Part, index: number): Frame[] {
  return [
    named({ type: "content_block_start", index, content_block: openedBlock(part) }),
    ...blockDeltas(reply, part, index).map((delta) => named({ type: "content_block_delta", index, delta })),
    named({ type: "content_block_stop", index }),
  ];
}

function extraBlocks({ behavior: { extra } }: SimulatedReply): object[] {
  return extra ? [{ type: "simulated_block", ...extra }] : [];
}

function extraFrames(content_block: object, index: number): Frame[] {
  return [named({ type: "content_block_start", index, content_block }), named({ type: "content_block_stop", index })];
}

function openedBlock(part: Part): object {
  if (part.kind === "tool") return { ...toolBlock(part), input: {} };
  if (part.kind === "redacted") return { type: "redacted_thinking", data: part.text };
  if (part.kind === "thinking") return { type: "thinking", thinking: "", signature: "" };
  return { type: "text", text: "", citations: null };
}

function blockDeltas(reply: SimulatedReply, part: Part, index: number): object[] {
  const pieces = (text: string) => deltas(text, reply.behavior);
  if (part.kind === "redacted") return [];
  if (part.kind === "thinking") {
    const shown = pieces(shownThinking(reply, part.text)).map((thinking) => ({ type: "thinking_delta", thinking }));
    return [...shown, { type: "signature_delta", signature: signature(reply, index) }];
  }
  if (part.kind === "tool") {
    // The first delta of the real service is empty, and accumulators must handle it.
    return ["", ...pieces(inputText(part))].map((piece) => ({ type: "input_json_delta", partial_json: piece }));
  }
  return pieces(part.text).map((text) => ({ type: "text_delta", text }));
}

function toolBlock(tool: ToolCall): object {
  return { type: "tool_use", id: tool.id, name: tool.name, caller: { type: "direct" } };
}

function inputText(tool: ToolCall): string {
  return tool.custom ? JSON.stringify({ input: tool.text }) : tool.text;
}

function toolInput(tool: ToolCall): unknown {
  try {
    return JSON.parse(inputText(tool));
  } catch {
    return {};
  }
}

function shownThinking(reply: SimulatedReply, text: string): string {
  return object(reply.request.thinking).display === "omitted" ? "" : text;
}

function signature(reply: SimulatedReply, index: number): string {
  return opaque(reply.seed, "signature", index);
}
