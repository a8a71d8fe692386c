/** The output items of a responses reply, each with the events that open, fill and close it. */

import type { JsonObject } from "../values/json-object.ts";
import type { Frame } from "./frame.ts";
import { idFrom, opaque } from "./ids.ts";
import { deltas, type Part, type Prose, paddingFor, type SimulatedReply, type ToolCall } from "./reply.ts";

/** One output item: its final form, and its frames at a given index of the output. */
export interface OutputItem {
  readonly item: Readonly<Record<string, unknown>>;
  readonly isTool: boolean;
  frames(outputIndex: number): Frame[];
}

/** All items of the reply, in order; with `oneItem`, all texts and the refusal share one message. */
export function outputItems(reply: SimulatedReply): OutputItem[] {
  const thoughts = reply.parts.filter((part) => part.kind === "thinking" || part.kind === "redacted");
  const spoken = reply.parts.filter((part): part is Prose => part.kind === "text" || part.kind === "refusal");
  const calls = reply.parts.filter((part) => part.kind === "tool");
  const messages = reply.behavior.oneItem ? (spoken.length === 0 ? [] : [spoken]) : spoken.map((part) => [part]);
  return [
    ...thoughts.map((part, i) => reasoningItem(reply, part, i)),
    ...messages.map((parts, i) => messageItem(reply, parts, i)),
    ...calls.map((call, i) => callItem(reply, call, i)),
    ...extraItems(reply),
  ];
}

function extraItems({ seed, behavior: { extra } }: SimulatedReply): OutputItem[] {
  if (!extra) return [];
  const item = { id: idFrom(seed, "sim_"), type: "simulated_item" };
  const final = { ...item, ...extra };
  return [{ item: final, isTool: false, frames: (index) => [opened(item, index), closed(final, index)] }];
}

/** A frame named after its type. */
export function typed(type: string, fields: JsonObject): Frame {
  return { event: type, json: { type, ...fields } };
}

function opened(item: JsonObject, outputIndex: number): Frame {
  return typed("response.output_item.added", { output_index: outputIndex, item });
}

function closed(item: JsonObject, outputIndex: number): Frame {
  return typed("response.output_item.done", { output_index: outputIndex, item });
}

/** Deltas of one text; with `obfuscation`, their lengths are evened out. */
function deltaFrames(reply: SimulatedReply, type: string, text: string, fields: JsonObject): Frame[] {
  return deltas(text, reply.behavior).map((delta) => {
    const padding = reply.behavior.obfuscation ? { obfuscation: paddingFor(delta) } : {};
    return typed(type, { ...fields, delta, ...padding });
  });
}

function reasoningItem(reply: SimulatedReply, part: Part, ordinal: number): OutputItem {
  const id = idFrom(reply.seed, "rs_", ordinal);
  const include = reply.request.include;
  const isSealed =
    part.kind === "redacted" || (Array.isArray(include) && include.includes("reasoning.encrypted_content"));
  const sealed = part.kind === "redacted" ? part.text : opaque(reply.seed, "reasoning", ordinal);
  const encrypted = isSealed ? { encrypted_content: sealed } : {};
  const isRaw = reply.behavior.rawReasoning === true;
  const isShown = part.kind === "thinking";
  const content = isRaw ? { summary: [], content: [{ type: "reasoning_text", text: part.text }] } : {};
  const summary = isShown && !isRaw ? { summary: [{ type: "summary_text", text: part.text }] } : { summary: [] };
  const item = { id, type: "reasoning", ...summary, ...(isShown ? content : {}), ...encrypted };
  return {
    item,
    isTool: false,
    frames: (index) => [
      opened({ id, type: "reasoning", summary: [] }, index),
      ...(isShown ? thoughtFrames(reply, part.text, { item_id: id, output_index: index }, isRaw) : []),
      closed(item, index),
    ],
  };
}

function thoughtFrames(reply: SimulatedReply, text: string, at: JsonObject, isRaw: boolean): Frame[] {
  if (isRaw) {
    const where = { ...at, content_index: 0 };
    return [
      typed("response.content_part.added", { ...where, part: { type: "reasoning_text", text: "" } }),
      ...deltaFrames(reply, "response.reasoning_text.delta", text, where),
      typed("response.reasoning_text.done", { ...where, text }),
      typed("response.content_part.done", { ...where, part: { type: "reasoning_text", text } }),
    ];
  }
  const where = { ...at, summary_index: 0 };
  return [
    typed("response.reasoning_summary_part.added", { ...where, part: { type: "summary_text", text: "" } }),
    ...deltaFrames(reply, "response.reasoning_summary_text.delta", text, where),
    typed("response.reasoning_summary_text.done", { ...where, text }),
    typed("response.reasoning_summary_part.done", { ...where, part: { type: "summary_text", text } }),
  ];
}

function messageItem(reply: SimulatedReply, parts: readonly Prose[], ordinal: number): OutputItem {
  const id = idFrom(reply.seed, "msg_", ordinal);
  const isWhole = reply.stop !== "length" && reply.stop !== "context_window" && reply.stop !== "content_filter";
  const item = (status: string, content: readonly object[]) => ({
    id,
    type: "message",
    status,
    role: "assistant",
    content,
  });
  const final = item(
    isWhole ? "completed" : "incomplete",
    parts.map((part) => contentPart(part, part.text)),
  );
  return {
    item: final,
    isTool: false,
    frames: (index) => [
      opened(item("in_progress", []), index),
      ...parts.flatMap((part, i) => partFrames(reply, part, { item_id: id, output_index: index, content_index: i })),
      closed(final, index),
    ],
  };
}

function contentPart(part: Prose, text: string): object {
  if (part.kind === "refusal") return { type: "refusal", refusal: text };
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function partFrames(reply: SimulatedReply, part: Prose, at: JsonObject): Frame[] {
  const { text } = part;
  const spoken =
    part.kind === "refusal"
      ? [
          ...deltaFrames(reply, "response.refusal.delta", text, at),
          typed("response.refusal.done", { ...at, refusal: text }),
        ]
      : [
          ...deltaFrames(reply, "response.output_text.delta", text, { ...at, logprobs: [] }),
          typed("response.output_text.done", { ...at, text, logprobs: [] }),
        ];
  return [
    typed("response.content_part.added", { ...at, part: contentPart(part, "") }),
    ...spoken,
    typed("response.content_part.done", { ...at, part: contentPart(part, text) }),
  ];
}

function callItem(reply: SimulatedReply, call: ToolCall, ordinal: number): OutputItem {
  const id = idFrom(reply.seed, call.custom ? "ctc_" : "fc_", ordinal);
  const member = call.custom ? "input" : "arguments";
  const prefix = call.custom ? "response.custom_tool_call_input" : "response.function_call_arguments";
  const item = (status: string, text: string) => ({
    id,
    type: call.custom ? "custom_tool_call" : "function_call",
    status,
    [member]: text,
    call_id: call.id,
    name: call.name,
    ...(call.namespace === undefined ? {} : { namespace: call.namespace }),
  });
  return {
    item: item("completed", call.text),
    isTool: true,
    frames: (index) => {
      const at = { item_id: id, output_index: index };
      return [
        opened(item("in_progress", ""), index),
        ...deltaFrames(reply, `${prefix}.delta`, call.text, at),
        typed(`${prefix}.done`, { ...at, [member]: call.text }),
        closed(item("completed", call.text), index),
      ];
    },
  };
}
