/** Decodes a whole message to the hub form (docs/translation-rules.md rules 38 to 46). */

import { arrayOf, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import type { UpstreamFault } from "../exchange.ts";
import type { ReplyPlan } from "../hub.ts";
import { type Citation, type ReplyItem, type Stop, stopFor } from "../hub-reply.ts";
import { type DecodedReply, wholeReply } from "../reply/decoder.ts";
import { compactJson } from "../reply/depth.ts";
import { callInput, type Ids, ReplyCallIds, restoreCall } from "../reply/tool-call.ts";
import { finishOf } from "../rules/finish-words.ts";
import { beyondLimit, brokenOff, errorIn, invalid, reported } from "../watch.ts";
import { countContent } from "./produced.ts";
import { readUsage } from "./usage.ts";

/**
 * Decodes a whole reply.
 * @param json the parsed body.
 * @param ids source of ids for calls that have none (rule 35).
 * @returns a fault for an error in a 200 body, for a body without content, and for arguments that nest too deep.
 */
export function decodeReply(json: JsonObject, plan: ReplyPlan, ids: Ids): DecodedReply | UpstreamFault {
  const error = errorIn(json);
  if (json.type === "error" || error)
    return reported(error?.type, error?.code, error?.message, undefined, error?.details);
  if (!Array.isArray(json.content)) return invalid("a message without content");
  const stop = stopOf(json) ?? stopFor("end");
  if (stop === "failure") return brokenOff(json.stop_reason);
  const callIds = new ReplyCallIds(plan, ids);
  const items: ReplyItem[] = [];
  for (const one of json.content) {
    const block = objectOf(one);
    const item = block && itemOf(block, plan, callIds);
    if (item === TOO_DEEP) return beyondLimit("the arguments of a call nest too deep");
    if (item) items.push(item);
  }
  return wholeReply(
    items,
    stop,
    {
      upstreamId: textOf(json.id),
      usage: readUsage(json.usage),
      serviceTier: serviceTierOf(json.usage),
      createdS: undefined,
    },
    countContent(json.content),
  );
}

const TOO_DEEP = Symbol("nested too deep");

/** Undefined for blocks of tools that the server runs; clients of other protocols do not get them (rule 42). */
function itemOf(block: JsonObject, plan: ReplyPlan, callIds: ReplyCallIds): ReplyItem | typeof TOO_DEEP | undefined {
  switch (block.type) {
    case "text":
      return textItem(block);
    case "thinking":
      return thinkingItem(textOf(block.thinking) ?? "", textOf(block.signature));
    case "redacted_thinking":
      return redactedItem(textOf(block.data));
    case "tool_use":
      return callItem(block, plan, callIds);
    default:
      return undefined;
  }
}

function thinkingItem(text: string, signature: string | undefined): ReplyItem | undefined {
  if (text === "" && signature === undefined) return undefined;
  const native = thinkingBlock(text, signature);
  return { type: "reasoning", text, opaque: signature, native, redacted: false };
}

function redactedItem(data: string | undefined): ReplyItem | undefined {
  if (data === undefined) return undefined;
  return { type: "reasoning", text: "", opaque: data, native: redactedBlock(data), redacted: true };
}

function textItem(block: JsonObject): ReplyItem | undefined {
  const text = textOf(block.text);
  if (text === undefined) return undefined;
  const citations = arrayOf(block.citations).flatMap((one) => citationOf(one, text.length) ?? []);
  return { type: "text", text, startsMessage: true, citations, logprobs: undefined };
}

function callItem(block: JsonObject, plan: ReplyPlan, callIds: ReplyCallIds): ReplyItem | typeof TOO_DEEP | undefined {
  const name = textOf(block.name);
  if (name === undefined) return undefined;
  const text = inputText(block.input);
  if (text === undefined) return TOO_DEEP;
  const restored = restoreCall(plan, { name, freeform: false });
  const input = callInput(restored, false, text);
  return { type: "tool-call", id: callIds.take(textOf(block.id)), tool: restored.tool, input };
}

/** A call's `input` as JSON text (rule 41); "" if it is not an object, undefined if it nests too deep. */
export function inputText(input: unknown): string | undefined {
  if (typeof input === "string") return input;
  return objectOf(input) ? compactJson(input) : "";
}

/** The block exactly as messages writes it: an envelope seals it and a later request returns it. */
export function thinkingBlock(thinking: string, signature: string | undefined): JsonObject {
  return { type: "thinking", thinking, signature: signature ?? "" };
}

/** A redacted block as messages writes it. */
export function redactedBlock(data: string | undefined): JsonObject {
  return { type: "redacted_thinking", data: data ?? "" };
}

/**
 * A web source (rule 42); its range is the whole block. Citations of documents that the client sent are not carried.
 * @param chars UTF-16 units of the block's text.
 */
export function citationOf(value: unknown, chars: number): Citation | undefined {
  const citation = objectOf(value);
  const url = textOf(citation?.url);
  if (citation?.type !== "web_search_result_location" || url === undefined) return undefined;
  return { url, title: textOf(citation.title) ?? "", startIndex: 0, endIndex: chars };
}

/**
 * The stop that a message, or the delta at its end, names (rule 43).
 * @param ending contains `stop_reason`, `stop_sequence` and `stop_details`.
 * @returns undefined if it names none.
 */
export function stopOf(ending: JsonObject): Stop | "failure" | undefined {
  const reason = finishOf(ending.stop_reason);
  if (reason === undefined || reason === "failure") return reason;
  if (reason === "stop-sequence") return { ...stopFor(reason), stopSequence: textOf(ending.stop_sequence) };
  if (reason !== "refusal") return stopFor(reason);
  const details = objectOf(ending.stop_details);
  return {
    ...stopFor(reason),
    refusal: { category: textOf(details?.category) ?? null, explanation: textOf(details?.explanation) ?? null },
  };
}

/** The service tier as OpenAI's value, which the two other protocols use (rule 44). */
export function serviceTierOf(usage: unknown): string | undefined {
  const tier = textOf(objectOf(usage)?.service_tier);
  return tier === "standard" ? "default" : tier;
}
