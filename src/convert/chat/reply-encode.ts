/** Whole replies for chat clients (directions CM and CR). */

import type { JsonObject } from "../../values/json-object.ts";
import { NO_USAGE } from "../../values/tokens/usage.ts";
import type { ConvertContext } from "../exchange.ts";
import type { ReplyPlan, ToolRef } from "../hub.ts";
import type { Citation, HubReply, ReplyItem, StopReason } from "../hub-reply.ts";
import { knownFinish } from "../rules/finish-words.ts";
import { safeCallId } from "../rules/ids.ts";
import { writeUsage } from "./usage.ts";

/** The finish reasons of docs/translation-rules.md rule 43. */
const FINISH_REASONS: Readonly<Record<StopReason, string>> = {
  end: "stop",
  "stop-sequence": "stop",
  pause: "stop",
  "tool-calls": "tool_calls",
  "output-limit": "length",
  "context-limit": "length",
  refusal: "content_filter",
};

type TextItem = Extract<ReplyItem, { type: "text" }>;
type ToolCallItem = Extract<ReplyItem, { type: "tool-call" }>;

/**
 * The body of a `chat.completion`, with all members that clients read. In `reply`, tool names are the client's and stop
 * strings are applied.
 */
export function encodeReply(reply: HubReply, plan: ReplyPlan, context: ConvertContext): Uint8Array {
  const calls = reply.items.filter((item): item is ToolCallItem => item.type === "tool-call");
  const texts = reply.items.filter((item): item is TextItem => item.type === "text");
  const body = {
    id: completionId(context),
    object: "chat.completion",
    created: reply.createdS ?? context.nowS,
    model: plan.model,
    choices: [
      {
        index: 0,
        message: messageOf(reply, texts, calls, plan),
        logprobs: logprobsOf(texts),
        finish_reason: finishReason(reply.stop.reason, plan),
      },
    ],
    usage: writeUsage(reply.usage ?? NO_USAGE),
    service_tier: reply.serviceTier,
  };
  return Buffer.from(JSON.stringify(body));
}

function messageOf(
  reply: HubReply,
  texts: readonly TextItem[],
  calls: readonly ToolCallItem[],
  plan: ReplyPlan,
): JsonObject {
  const refusals = reply.items.flatMap((item) => (item.type === "refusal" && item.text !== "" ? [item.text] : []));
  const reasoning = reply.items.flatMap((item) => (item.type === "reasoning" && item.text !== "" ? [item.text] : []));
  const urls = reply.items.flatMap((item) => (item.type === "image" ? [item.url] : []));
  const images = urls.map(imageOf);
  const { content, annotations } = joinTexts(texts, plan);
  return {
    role: "assistant",
    content: content !== "" || (calls.length === 0 && refusals.length === 0) ? content : null,
    refusal: refusals.length > 0 ? refusals.join("") : (reply.stop.refusal?.explanation ?? null),
    reasoning_content: reasoning.length > 0 ? reasoning.join(REASONING_SEPARATOR) : undefined,
    annotations: annotations.length > 0 ? annotations : undefined,
    images: images.length > 0 ? images : undefined,
    ...encodeCalls(calls, plan),
  };
}

/** An image that the model made, in OpenRouter's form. @param index its position among the images of the reply. */
export function imageOf(url: string, index: number): JsonObject {
  return { type: "image_url", image_url: { url }, index };
}

function encodeCalls(calls: readonly ToolCallItem[], plan: ReplyPlan): JsonObject {
  const [first] = calls;
  if (!first) return {};
  if (plan.deprecatedFunctions) return { function_call: { name: first.tool.name, arguments: argumentsOf(first) } };
  return {
    tool_calls: calls.map((call) => ({
      id: safeCallId(call.id),
      ...(call.tool.kind === "custom"
        ? { type: "custom", custom: { name: call.tool.name, input: call.input } }
        : { type: "function", function: { name: call.tool.name, arguments: argumentsOf(call) } }),
    })),
  };
}

function argumentsOf({ input }: ToolCallItem): string {
  return input.trim() === "" ? "{}" : input;
}

/** All texts as one string, and their citations with positions in it (rule 42). */
function joinTexts(texts: readonly TextItem[], plan: ReplyPlan): { content: string; annotations: JsonObject[] } {
  let content = "";
  const annotations: JsonObject[] = [];
  let separatorDue = false;
  for (const item of texts) {
    separatorDue ||= item.startsMessage && content !== "" && separatorBetweenMessages(plan) !== "";
    if (item.text !== "" && separatorDue) {
      content += separatorBetweenMessages(plan);
      separatorDue = false;
    }
    const offset = content.length;
    annotations.push(...item.citations.map((one) => annotationOf(one, offset, item.text.length)));
    content += item.text;
  }
  return { content, annotations };
}

/**
 * A source on the web, with positions in the whole content.
 * @param offset where the text begins that it belongs to.
 * @param chars length of that text, which counts if the source has no end.
 */
export function annotationOf(
  { url, title, startIndex, endIndex }: Citation,
  offset: number,
  chars: number,
): JsonObject {
  const place = { start_index: offset + (startIndex ?? 0), end_index: offset + (endIndex ?? chars) };
  return { type: "url_citation", url_citation: { ...place, url, title } };
}

function logprobsOf(texts: readonly TextItem[]): JsonObject | null {
  const content = texts.flatMap((item) => item.logprobs ?? []);
  return content.length > 0 ? { content, refusal: null } : null;
}

/** The separator between blocks of reasoning (rule 39). */
export const REASONING_SEPARATOR = "\n\n";

/**
 * The separator between two texts: items of responses are separate messages, blocks of messages are one text (rule 40).
 */
export function separatorBetweenMessages(plan: ReplyPlan): string {
  return plan.upstream === "responses" ? "\n\n" : "";
}

/** The finish reason for the client of this plan. */
export function finishReason(reason: StopReason, plan: ReplyPlan): string {
  return reason === "tool-calls" && plan.deprecatedFunctions ? "function_call" : FINISH_REASONS[reason];
}

const OWN: ReadonlySet<string> = new Set([...Object.values(FINISH_REASONS), "function_call"]);

/** Whether a finish reason is one of the protocol's own. */
export function isOwnFinish(word: string): boolean {
  return OWN.has(word);
}

/**
 * JSON text of the protocol's own finish reason for an unknown one (rule 43): `null` for a failure, which is no end.
 */
export function ownFinish(word: string): string | undefined {
  const finish = isOwnFinish(word) ? undefined : knownFinish(word);
  if (finish === undefined) return undefined;
  return finish === "failure" ? "null" : JSON.stringify(FINISH_REASONS[finish]);
}

/** A new completion id (rule 7). */
export function completionId(context: ConvertContext): string {
  return `chatcmpl-${context.randomId(24)}`;
}

/** The first delta of a call. */
export function startOfCall(id: string, tool: ToolRef): JsonObject {
  return tool.kind === "custom"
    ? { id, type: "custom", custom: { name: tool.name, input: "" } }
    : { id, type: "function", function: { name: tool.name, arguments: "" } };
}

/** A delta with a piece of a call's arguments or free text. */
export function pieceOfCall(tool: ToolRef, input: string): JsonObject {
  return tool.kind === "custom" ? { custom: { input } } : { function: { arguments: input } };
}
