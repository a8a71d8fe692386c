/** Decodes a whole chat completion to the hub form (docs/translation-rules.md rules 38 to 46). */

import { arrayOf, type JsonObject, objectOf, objectsIn, textOf } from "../../values/json-object.ts";
import type { UpstreamFault } from "../exchange.ts";
import type { ReplyPlan } from "../hub.ts";
import { type ReplyItem, type Stop, type StopReason, stopFor } from "../hub-reply.ts";
import { type DecodedReply, wholeReply } from "../reply/decoder.ts";
import { compactJson } from "../reply/depth.ts";
import { createdSeconds, logprobList, SILENT_REFUSAL, urlCitation } from "../reply/facts.ts";
import { type CallIdentity, callInput, type Ids, ReplyCallIds, restoreCall } from "../reply/tool-call.ts";
import { type Finish, finishOf, moreSevere } from "../rules/finish-words.ts";
import { madeImage } from "../rules/media.ts";
import { brokenOff, errorIn, invalid, reported } from "../watch.ts";
import { ListedReasoning } from "./listed-reasoning.ts";
import { countChoices, messageOf } from "./produced.ts";
import { RETURNED, ReturnedParts } from "./returned.ts";
import { splitThinking } from "./think-tags.ts";
import { readWholeUsage } from "./usage.ts";

/**
 * Decodes a whole reply.
 * @param json the parsed body.
 * @param ids source of ids for calls that have none (rule 35).
 * @returns a fault for an error in a 200 body and for a body without a choice (rule 46).
 */
export function decodeReply(json: JsonObject, plan: ReplyPlan, ids: Ids): DecodedReply | UpstreamFault {
  const error = errorIn(json);
  if (error) return reported(error.type, error.code, error.message, error.param);
  const choice = choiceIn(json);
  const message = choice && messageOf(choice);
  if (!choice || !message) return invalid("a chat completion without a choice");
  const finish = finishOfChoice(choice) ?? "end";
  if (finish === "failure") return brokenOff(failureWordOf(choice));
  return wholeReply(
    itemsOf(message, choice, plan, ids),
    stopOf(finish),
    {
      upstreamId: textOf(json.id),
      usage: readWholeUsage(json),
      serviceTier: textOf(json.service_tier),
      createdS: createdSeconds(json.created),
    },
    countChoices(json.choices),
  );
}

/** The choice that a stream would be read from: more than one is never asked for (rule 30), but a server may send more. */
function choiceIn(json: JsonObject): JsonObject | undefined {
  const choices = arrayOf(json.choices);
  return objectOf(choices.find((choice) => objectOf(choice)?.index === 0) ?? choices[0]);
}

/** Reasoning, text, refusal, calls; chat's members have no order of their own (rule 39). */
function itemsOf(message: JsonObject, choice: JsonObject, plan: ReplyPlan, ids: Ids): readonly ReplyItem[] {
  const split = splitThinking(plan.reasoning.inText ?? "none", contentText(message.content));
  const beside = reasoningOf(message) ?? new ListedReasoning().read(message, false);
  const reasoning = beside + split.reasoning;
  const { text } = split;
  const refusal = textOf(message.refusal);
  const items: ReplyItem[] = [];
  const returned = new ReturnedParts(UNCOUNTED);
  const carry = (readable: string) => {
    if (readable === "" && returned.isEmpty) return;
    const native = returned.take(readable);
    const opaque = typeof native === "string" ? undefined : RETURNED;
    items.push({ type: "reasoning", text: readable, opaque, native, redacted: readable === "" });
  };
  if (plan.reasoning.envelope) returned.seeMessage(message);
  if (reasoning || text) carry(reasoning);
  if (text) {
    const citations = arrayOf(message.annotations).flatMap((one) => urlCitation(one) ?? []);
    const logprobs = logprobList(objectOf(choice.logprobs)?.content);
    items.push({ type: "text", text, startsMessage: true, citations, logprobs });
  }
  if (refusal) items.push({ type: "refusal", text: refusal });
  for (const url of imagesOf(message)) items.push({ type: "image", url });
  const callIds = new ReplyCallIds(plan, ids);
  // A call without a name is skipped (rule 54), also in the numbering.
  const named = callsOf(message).filter((call) => callIdentity(call) !== undefined);
  for (const [place, call] of named.entries()) {
    if (plan.reasoning.envelope) returned.seeCall(call, callIds.kept(textOf(call.id)), place);
    carry("");
    for (const item of callItem(call, plan, callIds)) items.push(item);
  }
  carry("");
  return items;
}

/** The size of a whole reply is limited elsewhere. What nests too deep in it is not sealed. */
const UNCOUNTED = Object.freeze({ keep() {}, exceed() {} });

/** The calls of a message or delta; the deprecated `function_call` is a call without an id. */
export function callsOf(message: JsonObject): readonly JsonObject[] {
  const calls = listedCalls(message.tool_calls);
  const deprecated = objectOf(message.function_call);
  return calls.length === 0 && deprecated ? [{ function: deprecated }] : calls;
}

/** The elements of `tool_calls`; TGI sends one call instead of the list (docs/vendor-dialects.md). */
export function listedCalls(value: unknown): readonly JsonObject[] {
  const one = objectOf(value);
  return one ? [one] : objectsIn(value);
}

/** A whole message as one delta; its calls are identified by their position (rule 54). */
export function deltaOf(message: JsonObject): JsonObject {
  if (!Array.isArray(message.tool_calls)) return message;
  return { ...message, tool_calls: objectsIn(message.tool_calls).map((call, index) => ({ index, ...call })) };
}

/** A call without a name is skipped (rule 54). */
function callItem(call: JsonObject, plan: ReplyPlan, callIds: ReplyCallIds): readonly ReplyItem[] {
  const identity = callIdentity(call);
  if (identity === undefined) return [];
  const restored = restoreCall(plan, identity);
  const input = callInput(restored, identity.freeform, callText(call));
  return [{ type: "tool-call", id: callIds.take(textOf(call.id)), tool: restored.tool, input }];
}

/** The name in a call, or in a delta of one; undefined: none. */
export function callIdentity(call: JsonObject): CallIdentity | undefined {
  const custom = objectOf(call.custom);
  const name = textOf((custom ?? objectOf(call.function))?.name);
  return name === undefined ? undefined : { name, freeform: custom !== undefined };
}

/** The arguments or free text of a call or delta. Some servers send arguments as an object. */
export function callText(call: JsonObject): string {
  const value = objectOf(call.custom)?.input ?? objectOf(call.function)?.arguments;
  if (typeof value === "string") return value;
  return objectOf(value) ? (compactJson(value) ?? "") : "";
}

/**
 * Reasoning in either of its members, or in parts of the content (rule 38). A server that sends it in several members
 * repeats it.
 */
export function reasoningOf(message: JsonObject): string | undefined {
  return textOf(message.reasoning_content) ?? textOf(message.reasoning) ?? textOf(thinkingText(message.content));
}

/** The text of Mistral's parts of type `thinking`, whose content is a text or a list of texts. */
function thinkingText(content: unknown): string {
  const parts = partsOf(content).filter(({ type }) => type === "thinking");
  return parts.map(({ thinking }) => contentText(thinking)).join("");
}

/** The parts of `content`; some servers send one part instead of a list. */
function partsOf(content: unknown): readonly JsonObject[] {
  const one = objectOf(content);
  return one ? [one] : objectsIn(content);
}

/** Types of parts that are text: chat's own, and that of responses, which some servers use on chat. */
const TEXT_TYPES: ReadonlySet<unknown> = new Set(["text", "output_text", undefined]);

/** The text of `content`: a string, or the parts that are text. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  const texts = partsOf(content).filter(({ type }) => TEXT_TYPES.has(type));
  return texts.map(({ text }) => textOf(text) ?? "").join("");
}

/** Images that the model made: in `images` of a message or delta, as OpenRouter sends them, or in its parts. */
export function imagesOf(message: JsonObject): readonly string[] {
  const parts = partsOf(message.content).filter(({ type }) => type === "image_url");
  return [...parts, ...objectsIn(message.images)].flatMap((part) => madeImage(part) ?? []);
}

/**
 * Why a choice ended; undefined while it has not. A router's own reason may be milder than that of the server behind it
 * (`native_finish_reason`).
 */
export function finishOfChoice(choice: JsonObject): Finish | undefined {
  const finish = finishOf(choice.finish_reason);
  return finish && moreSevere(finish, finishOf(choice.native_finish_reason));
}

/** The finish reason of a choice that means that its server broke off; undefined otherwise. */
export function failureWordOf(choice: JsonObject): string | undefined {
  if (finishOfChoice(choice) !== "failure") return undefined;
  return [choice.finish_reason, choice.native_finish_reason].map(textOf).find((word) => finishOf(word) === "failure");
}

/** The stop that a finish reason means (rule 43). Chat does not say which stop string was matched. */
export function stopOf(reason: StopReason): Stop {
  if (reason === "refusal") return SILENT_REFUSAL;
  return stopFor(reason === "stop-sequence" ? "end" : reason);
}
