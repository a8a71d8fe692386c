/** Decodes a whole response to the hub form (docs/translation-rules.md rules 38 to 46). */

import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import type { UpstreamFault } from "../exchange.ts";
import type { ReplyPlan } from "../hub.ts";
import { type ReplyItem, type Stop, stopFor } from "../hub-reply.ts";
import { type DecodedReply, wholeReply } from "../reply/decoder.ts";
import { compactJson, nestsWithin } from "../reply/depth.ts";
import { createdSeconds, logprobList, SILENT_REFUSAL, urlCitation } from "../reply/facts.ts";
import { type CallIdentity, callInput, type Ids, ReplyCallIds, restoreCall } from "../reply/tool-call.ts";
import { knownFinish } from "../rules/finish-words.ts";
import { imageOfItem } from "../rules/media.ts";
import { beyondLimit, brokenOff, errorIn, invalid, reported } from "../watch.ts";
import { countOutput } from "./produced.ts";
import { readUsage } from "./usage.ts";

/** Statuses of a response that has no answer to pass on (rule 46). */
export const FAILED: ReadonlySet<unknown> = new Set(["failed", "cancelled"]);
const UNFINISHED: ReadonlySet<unknown> = new Set(["in_progress", "queued"]);

/**
 * Decodes a whole reply.
 * @param json the parsed body.
 * @param ids source of ids for calls that have none (rule 35).
 * @returns a fault for an error in a 200 body, for a failed or unfinished response (rule 46), and for one without
 * output.
 */
export function decodeReply(json: JsonObject, plan: ReplyPlan, ids: Ids): DecodedReply | UpstreamFault {
  const [fault, stop] = [faultOf(json), stopOf(json)];
  if (fault || stop === "failure") return fault ?? invalid("a response that failed");
  const callIds = new ReplyCallIds(plan, ids);
  const items: ReplyItem[] = [];
  for (const one of arrayOf(json.output)) {
    const item = objectOf(one);
    if (item?.type === "reasoning" && !nestsWithin(item)) return beyondLimit("a reasoning item nests too deep");
    if (item) items.push(...itemsOf(item, plan, callIds));
  }
  return wholeReply(
    items,
    stop,
    {
      upstreamId: textOf(json.id),
      usage: readUsage(json),
      serviceTier: textOf(json.service_tier),
      createdS: createdSeconds(json.created_at),
    },
    countOutput(json.output),
  );
}

/**
 * Why a response is not an answer (rule 46); undefined: it is one. Unfinished responses are not waited for, because
 * `background` is refused.
 */
export function faultOf(json: JsonObject): UpstreamFault | undefined {
  const error = errorIn(json);
  if (error || FAILED.has(json.status))
    return reported(error?.type, error?.code ?? json.status, error?.message, error?.param);
  if (!Array.isArray(json.output)) return invalid("a response without output");
  if (UNFINISHED.has(json.status)) return invalid("a response that is not finished");
  return stopOf(json) === "failure" ? brokenOff(objectOf(json.incomplete_details)?.reason) : undefined;
}

/**
 * The hub items of one item. None for items of tools that the server runs (rule 42), except the images that one has
 * made.
 */
function itemsOf(item: JsonObject, plan: ReplyPlan, callIds: ReplyCallIds): readonly ReplyItem[] {
  switch (item.type) {
    case "message":
      return messageItems(item);
    case "reasoning":
      return reasoningItems(item);
    case "function_call":
    case "custom_tool_call":
      return callItems(item, plan, callIds);
    case "image_generation_call": {
      const url = imageOfItem(item);
      return url === undefined ? [] : [{ type: "image", url }];
    }
    default:
      return [];
  }
}

function messageItems(item: JsonObject): readonly ReplyItem[] {
  const items: ReplyItem[] = [];
  for (const one of arrayOf(item.content)) {
    const part = objectOf(one);
    const text = part && partText(part);
    if (!text) continue;
    if (part.type === "refusal") items.push({ type: "refusal", text });
    else {
      const citations = arrayOf(part.annotations).flatMap((note) => urlCitation(note) ?? []);
      const startsMessage = items.length === 0;
      items.push({ type: "text", text, startsMessage, citations, logprobs: logprobList(part.logprobs) });
    }
  }
  return items;
}

/** The text of a content part of a message, "" for parts of other kinds. */
export function partText(part: JsonObject): string {
  if (part.type === "output_text") return textOf(part.text) ?? "";
  return part.type === "refusal" ? (textOf(part.refusal) ?? "") : "";
}

/** No item if there is neither readable text nor anything to send back (rule 38). */
function reasoningItems(item: JsonObject): readonly ReplyItem[] {
  const text = reasoningText(item);
  const opaque = textOf(item.encrypted_content);
  if (text === "" && opaque === undefined) return [];
  return [{ type: "reasoning", text, opaque, native: item, redacted: text === "" }];
}

/**
 * The readable text of a reasoning item: its summaries, else its raw text, with parts joined by a blank line (rule 38).
 */
export function reasoningText(item: JsonObject): string {
  const texts = (parts: unknown) => arrayOf(parts).flatMap((part) => textOf(objectOf(part)?.text) ?? []);
  const summaries = texts(item.summary);
  return (summaries.length > 0 ? summaries : texts(item.content)).join("\n\n");
}

function callItems(item: JsonObject, plan: ReplyPlan, callIds: ReplyCallIds): readonly ReplyItem[] {
  const identity = callIdentity(item);
  if (identity === undefined) return [];
  const restored = restoreCall(plan, identity);
  const input = callInput(restored, identity.freeform, callText(item));
  return [{ type: "tool-call", id: callIds.take(callIdOf(item)), tool: restored.tool, input }];
}

/** The name in a call item; undefined while there is none. */
export function callIdentity(item: JsonObject): CallIdentity | undefined {
  const name = textOf(item.name);
  if (name === undefined) return undefined;
  return { name, freeform: item.type === "custom_tool_call", namespace: textOf(item.namespace) };
}

/** The id with which a result is sent back: `call_id`, never the item's own (rule 41). */
export function callIdOf(item: JsonObject): string | undefined {
  return textOf(item.call_id);
}

/** The arguments or free text of a call item. Some servers send arguments as an object. */
export function callText(item: JsonObject): string {
  const value = item.type === "custom_tool_call" ? item.input : item.arguments;
  if (typeof value === "string") return value;
  return objectOf(value) ? (compactJson(value) ?? "") : "";
}

/**
 * The stop reason of a finished response (rule 43).
 * @param incomplete whether its event said so; some servers leave the status out.
 */
export function stopOf(response: JsonObject, incomplete = response.status === "incomplete"): Stop | "failure" {
  if (!incomplete) return stopFor("end");
  // Without a known reason it counts as the output limit; `end` would hide that something is missing.
  const reason = knownFinish(objectOf(response.incomplete_details)?.reason) ?? "output-limit";
  if (reason === "failure") return reason;
  return reason === "refusal" ? SILENT_REFUSAL : stopFor(reason);
}
