/** Short payloads of upstreams of the three protocols, and readers of the client's frames. */
import assert from "node:assert/strict";
import { type Frame, framesOf, sse } from "./rig.ts";

export type Json = Record<string, unknown>;

export const FUNCTION_TOOLS = {
  chat: ["f", "g"].map((name) => ({ type: "function", function: { name, parameters: {} } })),
  messages: ["f", "g"].map((name) => ({ name, input_schema: { type: "object" } })),
};

/** The deltas of a chat client's stream. */
export function chatDeltas(text: string): Json[] {
  return framesOf(text).flatMap(({ data }) => {
    const [choice] = (data.choices ?? []) as { delta: Json }[];
    return choice ? [choice.delta] : [];
  });
}

export function chatCalls(text: string): Json[] {
  return chatDeltas(text).flatMap((delta) => (delta.tool_calls ?? []) as Json[]);
}

export function joinArguments(calls: readonly Json[]): string {
  return calls.map((call) => (call.function as Json).arguments).join("");
}

export function choiceOf(body: Json): { finish_reason: string; message: Json } {
  const [choice] = body.choices as { finish_reason: string; message: Json }[];
  assert(choice);
  return choice;
}

/** A messages stream around the given events. */
export function messagesStream(
  events: readonly Json[],
  stopReason = "end_turn",
  usage: Json = { output_tokens: 3 },
): string {
  return sse("messages", [
    messageStart(),
    ...events,
    { type: "message_delta", delta: { stop_reason: stopReason, stop_sequence: null }, usage },
    { type: "message_stop" },
  ]);
}

export function messageStart(): Json {
  const usage = { input_tokens: 7, output_tokens: 1 };
  return { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", content: [], usage } };
}

export function block(index: number, content_block: Json, deltas: readonly Json[]): Json[] {
  return [
    { type: "content_block_start", index, content_block },
    ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

export function textBlock(index: number, ...texts: string[]): Json[] {
  return block(
    index,
    { type: "text", text: "" },
    texts.map((text) => ({ type: "text_delta", text })),
  );
}

export function chunk(delta: Json, finish_reason: string | null = null): Json {
  return {
    id: "c",
    object: "chat.completion.chunk",
    created: 5,
    model: "u",
    choices: [{ index: 0, delta, finish_reason }],
  };
}

export function usageChunk(usage: Json): Json {
  return { id: "c", object: "chat.completion.chunk", created: 5, model: "u", choices: [], usage };
}

export function completion(message: Json, finish_reason: string, usage?: Json): Json {
  return {
    id: "c",
    object: "chat.completion",
    created: 5,
    model: "u",
    choices: [{ index: 0, message, finish_reason }],
    usage,
  };
}

export function message(content: readonly Json[], stop_reason: string, more: Json = {}): Json {
  const usage = { input_tokens: 1, output_tokens: 1 };
  return { id: "msg_1", type: "message", role: "assistant", model: "u", content, stop_reason, usage, ...more };
}

export const PROMPT_7 = { prompt_tokens: 100, completion_tokens: 7 };

/** The frame at a position, counted from the end if negative. It must exist. */
export function frameAt(stream: string | readonly Frame[], index: number): Frame {
  const frames = typeof stream === "string" ? framesOf(stream) : stream;
  const frame = frames.at(index);
  assert(frame, `no frame at ${index}`);
  return frame;
}
