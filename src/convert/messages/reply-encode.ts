/** Whole replies for messages clients (directions MC and MR). */

import type { JsonObject } from "../../values/json-object.ts";
import { NO_USAGE, type Usage } from "../../values/tokens/usage.ts";
import type { ConvertContext } from "../exchange.ts";
import type { ReplyPlan, ToolRef } from "../hub.ts";
import type { HubReply, ReplyItem, Stop, StopReason } from "../hub-reply.ts";
import { sealReasoning } from "../rules/envelope.ts";
import { knownFinish } from "../rules/finish-words.ts";
import { safeCallId } from "../rules/ids.ts";
import { imageNote } from "../rules/media.ts";
import { argumentsObject } from "../rules/tool-wrap.ts";
import { writeUsage } from "./usage.ts";

/** The stop reasons of docs/translation-rules.md rule 43. */
const STOP_REASONS: Readonly<Record<StopReason, string>> = {
  end: "end_turn",
  "stop-sequence": "stop_sequence",
  pause: "pause_turn",
  "tool-calls": "tool_use",
  "output-limit": "max_tokens",
  "context-limit": "model_context_window_exceeded",
  refusal: "refusal",
};

/** The body of a `message`. In `reply`, tool names are the client's and stop strings are applied. */
export function encodeReply(reply: HubReply, plan: ReplyPlan, context: ConvertContext): Uint8Array {
  const content: JsonObject[] = [];
  let refused = "";
  for (const item of reply.items) {
    for (const block of blocksOf(item, plan, context)) content.push(block);
    if (item.type === "refusal") refused += item.text;
  }
  const usage = writeReplyUsage(reply.usage, reply.serviceTier);
  const message = messageOf(plan, context, { content, stop: stopMembers(reply.stop, refused), usage });
  return Buffer.from(JSON.stringify(message));
}

function blocksOf(item: ReplyItem, plan: ReplyPlan, context: ConvertContext): readonly JsonObject[] {
  if (item.type === "text" || item.type === "refusal") {
    return item.text === "" ? [] : [{ type: "text", text: item.text, citations: null }];
  }
  if (item.type === "image") return [{ type: "text", text: imageNote(item.url), citations: null }];
  if (item.type === "tool-call") {
    return [{ ...startOfToolUse(safeCallId(item.id), item.tool), input: argumentsObject(item.tool, item.input) }];
  }
  const signature = signatureOf(item, plan, context);
  if (!isShown(item, plan)) return [];
  const thinking = plan.reasoning.visibility === "full" ? item.text : "";
  return [{ type: "thinking", thinking, signature }];
}

/** The parts of reasoning that a messages client gets. */
interface Reasoning {
  readonly text: string;
  readonly opaque: string | undefined;
  readonly native: unknown;
}

/** Whether the client gets a block for this reasoning (rules 38 and 39). */
export function isShown({ text, opaque }: Reasoning, plan: ReplyPlan): boolean {
  // A chat server that signs its calls refuses them without the signatures, whether or not the client wants to see
  // thinking.
  if (plan.reasoning.visibility === "none") return plan.upstream === "chat" && opaque !== undefined;
  // Only a chat upstream takes plain text back; all others want what they sealed themselves.
  const comesBack = opaque !== undefined || (plan.upstream === "chat" && text !== "");
  return comesBack || (plan.reasoning.visibility === "full" && text !== "");
}

/** The value that the client sends back unchanged: our envelope around the upstream's own block. */
export function signatureOf({ native }: Reasoning, plan: ReplyPlan, context: ConvertContext): string {
  if (!plan.reasoning.envelope) return "";
  const { upstream: protocol, upstreamModel, account } = plan;
  return sealReasoning([native], { protocol, upstreamModel, account }, context);
}

/** A `tool_use` block before its input. */
export function startOfToolUse(id: string, tool: ToolRef): JsonObject {
  return { type: "tool_use", id, name: tool.name, input: {}, caller: { type: "direct" } };
}

/** The members that tell why a message ended. */
interface StopMembers {
  readonly stop_reason: string | null;
  readonly stop_sequence: string | null;
  readonly stop_details: JsonObject | null;
}

const NOT_STOPPED: StopMembers = Object.freeze({ stop_reason: null, stop_sequence: null, stop_details: null });

/** The message at the beginning of a stream. */
export function messageBegun(plan: ReplyPlan, context: ConvertContext, usage: JsonObject): JsonObject {
  return messageOf(plan, context, { content: [], stop: NOT_STOPPED, usage });
}

/** A message, written member by member: with spreads it takes 1.2 us more. The id is made here (rule 7). */
function messageOf(
  plan: ReplyPlan,
  context: ConvertContext,
  parts: { readonly content: readonly JsonObject[]; readonly stop: StopMembers; readonly usage: JsonObject },
): JsonObject {
  const { content, stop, usage } = parts;
  return {
    id: `msg_${context.randomId(24)}`,
    type: "message",
    role: "assistant",
    model: plan.model,
    content,
    stop_reason: stop.stop_reason,
    stop_sequence: stop.stop_sequence,
    stop_details: stop.stop_details,
    container: null,
    usage,
  };
}

/**
 * The members that tell why the message ended.
 * @param refused the model's own text of a refusal; "" if there is none.
 */
export function stopMembers(stop: Stop, refused: string): StopMembers {
  const reason = refused !== "" && stop.reason === "end" ? "refusal" : stop.reason;
  const { category = null, explanation = null } = stop.refusal ?? {};
  return {
    stop_reason: STOP_REASONS[reason],
    stop_sequence: reason === "stop-sequence" ? (stop.stopSequence ?? null) : null,
    stop_details:
      reason === "refusal" ? { type: "refusal", category, explanation: explanation ?? (refused || null) } : null,
  };
}

const OWN: ReadonlySet<string> = new Set(Object.values(STOP_REASONS));

/** JSON text of the protocol's own stop reason for an unknown one (rule 43): `null` for a failure, which is no end. */
export function ownStopReason(word: string): string | undefined {
  const finish = OWN.has(word) ? undefined : knownFinish(word);
  if (finish === undefined) return undefined;
  return finish === "failure" ? "null" : JSON.stringify(STOP_REASONS[finish]);
}

/** The hub's service tiers, which are OpenAI's, as this protocol's values. */
const TIERS: ReadonlyMap<string | undefined, string> = new Map([
  ["default", "standard"],
  ["priority", "priority"],
]);

/** Usage with every nullable member (rule 44). Zeros while nothing is known, because clients add the members up. */
export function writeReplyUsage(usage: Usage | undefined, tier: string | undefined): JsonObject {
  return writeUsage(usage ?? NO_USAGE, TIERS.get(tier));
}
