/** Whole replies for responses clients (directions RC and RM). */

import type { JsonObject } from "../../values/json-object.ts";
import type { ConvertContext } from "../exchange.ts";
import type { ReplyPlan } from "../hub.ts";
import type { HubReply, ReplyItem, Stop } from "../hub-reply.ts";
import { safeCallId } from "../rules/ids.ts";
import { isTruncated } from "../stream-encoder.ts";
import { callItem, callItemId, imageItem, imageText, itemId, keptReasoning, messageItem, partOf } from "./items.ts";
import { SealedIds } from "./references/sealing.ts";
import { responseEnded, responseId } from "./response.ts";

type SpokenItem = Extract<ReplyItem, { type: "text" | "refusal" }>;

/** The body of a `response`. In `reply`, tool names are the client's and stop strings are applied. */
export function encodeReply(reply: HubReply, plan: ReplyPlan, context: ConvertContext): Uint8Array {
  const identity = {
    id: responseId(context),
    createdS: reply.createdS ?? context.nowS,
    tier: reply.serviceTier,
  };
  const output = outputOf(reply, plan, context);
  const body = responseEnded(identity, plan, context, { stop: reply.stop, output, usage: reply.usage });
  return Buffer.from(JSON.stringify(body));
}

function outputOf(reply: HubReply, plan: ReplyPlan, context: ConvertContext): readonly JsonObject[] {
  const output: JsonObject[] = [];
  const ids = plan.referable ? new SealedIds(context) : undefined;
  const put = (item: JsonObject, kept = item) =>
    output.push(ids ? { ...item, id: ids.of(item.id, kept) ?? item.id } : item);
  let spoken: SpokenItem[] = [];
  const closeMessage = (isLast: boolean) => {
    if (spoken.length === 0) return;
    const status = isLast && isTruncated(reply.stop) ? "incomplete" : "completed";
    put(messageItem(itemId("msg_", context), status, spoken.map(partOf)));
    spoken = [];
  };
  const shown = reply.items.filter((item) => !isEmpty(item)).map(withoutAddress);
  const items = [...shown, ...explanationOf(shown, reply.stop)];
  for (const [index, item] of items.entries()) {
    if (item.type === "text" || item.type === "refusal") {
      spoken.push(item); // Consecutive texts are one message of several parts (docs/translation-rules.md rule 40).
      continue;
    }
    closeMessage(false);
    const isLast = index === items.length - 1;
    const status = isLast && isTruncated(reply.stop) ? "incomplete" : "completed";
    if (item.type === "reasoning") {
      const thought = keptReasoning(itemId("rs_", context), item, plan, context);
      put(thought.item, thought.kept);
    } else if (item.type === "image") {
      const made = imageItem(item.url, context);
      put(made.item, made.kept);
    } else put(callItem(callItemId(item.tool, context), safeCallId(item.id), item.tool, item.input, status));
  }
  closeMessage(true);
  return output;
}

/** Replaces an image behind a URL by text. */
function withoutAddress(item: ReplyItem): ReplyItem {
  const text = item.type === "image" ? imageText(item.url) : undefined;
  if (text === undefined) return item;
  return { type: "text", text, startsMessage: true, citations: [], logprobs: undefined };
}

function isEmpty(item: ReplyItem): boolean {
  return (item.type === "text" || item.type === "refusal") && item.text === "";
}

/** The vendor's explanation of a refusal, if the model wrote no text (rule 43). */
function explanationOf(items: readonly ReplyItem[], stop: Stop): readonly SpokenItem[] {
  const isSilent = !items.some((item) => (item.type === "text" || item.type === "refusal") && item.text !== "");
  const text = explanation(stop);
  return isSilent && text !== undefined ? [{ type: "refusal", text }] : [];
}

/** The vendor's explanation of a refusal, if there is one. */
export function explanation(stop: Stop): string | undefined {
  return stop.reason === "refusal" ? stop.refusal?.explanation || undefined : undefined;
}
