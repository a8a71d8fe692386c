/**
 * Output items for responses clients; streams and whole replies write the same items (docs/translation-rules.md rules
 * 39 to 43).
 */

import type { JsonObject } from "../../values/json-object.ts";
import type { ConvertContext } from "../exchange.ts";
import type { ReplyPlan, ToolKind, ToolRef } from "../hub.ts";
import type { Citation, ReplyItem } from "../hub-reply.ts";
import { sealReasoning } from "../rules/envelope.ts";
import { base64Image, imageNote } from "../rules/media.ts";
import { typedOfArguments } from "../rules/tool-typed.ts";
import { parseArguments } from "../rules/tool-wrap.ts";

export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** Prefixes of item ids (rule 7), by kind of call. */
const CALL_ID_PREFIXES: Readonly<Record<ToolKind, string>> = {
  function: "fc_",
  custom: "ctc_",
  local_shell: "lsh_",
  shell: "sh_",
  apply_patch: "apc_",
  tool_search: "tsc_",
};

const ITEM_ID_CHARS = 24;

/** A part of a message. */
export type MessagePart =
  | {
      readonly type: "output_text";
      text: string;
      readonly annotations: JsonObject[];
      readonly logprobs: unknown[];
    }
  | { readonly type: "refusal"; refusal: string };

/** A new id of a message or reasoning item. */
export function itemId(prefix: "msg_" | "rs_", context: ConvertContext): string {
  return prefix + context.randomId(ITEM_ID_CHARS);
}

/**
 * The text for an image that the model made behind a URL, because an image item has no member for it; undefined for
 * other images.
 */
export function imageText(url: string): string | undefined {
  return base64Image(url) === undefined ? imageNote(url) : undefined;
}

/**
 * An image that the model made. The item for references has no bytes, because a server that gets the item back could
 * not read them.
 */
export function imageItem(
  url: string,
  context: ConvertContext,
): { readonly item: JsonObject; readonly kept: JsonObject } {
  const { format, data } = base64Image(url) ?? { format: undefined, data: null };
  const id = `ig_${context.randomId(ITEM_ID_CHARS)}`;
  const item = { id, type: "image_generation_call", status: "completed", output_format: format };
  return { item: { ...item, result: data }, kept: { ...item, result: null } };
}

/** A new id of a call's item; never the call's own id. */
export function callItemId(tool: ToolRef, context: ConvertContext): string {
  return CALL_ID_PREFIXES[tool.kind] + context.randomId(ITEM_ID_CHARS);
}

export function messageItem(id: string, status: ItemStatus, content: readonly MessagePart[]): JsonObject {
  return { id, type: "message", status, role: "assistant", content };
}

/** An empty text part. */
export function textPart(): MessagePart {
  return { type: "output_text", text: "", annotations: [], logprobs: [] };
}

/** An empty refusal part. */
export function refusalPart(): MessagePart {
  return { type: "refusal", refusal: "" };
}

/** A whole part. */
export function partOf(item: Extract<ReplyItem, { type: "text" | "refusal" }>): MessagePart {
  if (item.type === "refusal") return { type: "refusal", refusal: item.text };
  const annotations = item.citations.map((citation) => annotationOf(citation, item.text));
  return { type: "output_text", text: item.text, annotations, logprobs: [...(item.logprobs ?? [])] };
}

/** A citation as an annotation; offsets count within the part. */
export function annotationOf({ url, title, startIndex, endIndex }: Citation, text: string): JsonObject {
  return { type: "url_citation", url, title, start_index: startIndex ?? 0, end_index: endIndex ?? text.length };
}

/**
 * A reasoning item. Its text is a summary or raw reasoning, as the plan says; it has an envelope if the client asked
 * for encrypted content (rule 38).
 */
function reasoningItem(
  id: string,
  { text, native }: { readonly text: string; readonly native: unknown },
  plan: ReplyPlan,
  context: ConvertContext,
): JsonObject {
  const { summary, envelope } = plan.reasoning;
  const origin = { protocol: plan.upstream, upstreamModel: plan.upstreamModel, account: plan.account };
  return {
    id,
    type: "reasoning",
    summary: summary && text !== "" ? [{ type: "summary_text", text }] : [],
    content: !summary && text !== "" ? [{ type: "reasoning_text", text }] : undefined,
    encrypted_content: envelope ? sealReasoning([native], origin, context) : undefined,
  };
}

/**
 * A reasoning item for a client that may refer to it: `kept` goes into an id and always has its envelope, `item` is
 * what the client gets.
 */
export function keptReasoning(...asked: Parameters<typeof reasoningItem>): { item: JsonObject; kept: JsonObject } {
  const [id, thought, plan, context] = asked;
  if (!plan.referable || plan.reasoning.envelope) {
    const item = reasoningItem(id, thought, plan, context);
    return { item, kept: item };
  }
  const kept = reasoningItem(id, thought, { ...plan, reasoning: { ...plan.reasoning, envelope: true } }, context);
  return { item: { ...kept, encrypted_content: undefined }, kept };
}

/** A call in the client's form of its tool; `input` as in the hub. */
export function callItem(id: string, callId: string, tool: ToolRef, input: string, status: ItemStatus): JsonObject {
  const head = { id, type: TYPES[tool.kind], status, call_id: callId };
  switch (tool.kind) {
    case "function":
      return { ...head, ...named(tool), arguments: input };
    case "custom":
      return { ...head, ...named(tool), input };
    case "apply_patch":
      return { ...head, operation: typedOfArguments(tool.kind, parseArguments(input)) };
    case "tool_search":
      return { ...head, execution: "client", arguments: parseArguments(input) };
    default:
      return { ...head, action: typedOfArguments(tool.kind, parseArguments(input)) };
  }
}

const TYPES: Readonly<Record<ToolKind, string>> = {
  function: "function_call",
  custom: "custom_tool_call",
  local_shell: "local_shell_call",
  shell: "shell_call",
  apply_patch: "apply_patch_call",
  tool_search: "tool_search_call",
};

/** Name and namespace. Codex treats a call in which both are equal as one of an unknown tool (rule 41). */
function named({ name, namespace }: ToolRef): JsonObject {
  return namespace === undefined || namespace === name ? { name } : { name, namespace };
}
