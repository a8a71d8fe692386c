/** Counts the model output in chat deltas and messages. */

import { arrayOf, isGiven, type JsonObject, objectOf, textOf } from "../../values/json-object.ts";
import type { ProducedCounts } from "../../values/tokens/usage.ts";
import { countUnknown, Produced, StreamOutput } from "../produced.ts";

/** Members of a delta or message that are handled by name or are bookkeeping. Every other member counts as output. */
const KNOWN: ReadonlySet<string> = new Set([
  ...["content", "refusal", "tool_calls", "function_call", "audio", "images"],
  ...["reasoning_content", "reasoning", "reasoning_details", "thinking_blocks"],
  ...["annotations", "citations", "provider_specific_fields", "extra_content", "metadata"],
]);

/** Counts a stream, with all of its choices. */
export class ChatOutput extends StreamOutput {
  protected override look(_type: unknown, chunk: JsonObject): boolean {
    let found = false;
    for (const item of arrayOf(chunk.choices)) {
      const choice = objectOf(item);
      if (choice) found = countChoice(this.produced, choice) || found;
    }
    return found;
  }
}

/** Counts the choices of a whole completion. */
export function countChoices(choices: unknown): ProducedCounts {
  const produced = new Produced();
  for (const item of arrayOf(choices)) {
    const message = messageOf(objectOf(item) ?? {});
    if (message) countMessage(produced, message);
  }
  return produced.counts();
}

function countChoice(produced: Produced, choice: JsonObject): boolean {
  const delivered = objectOf(choice.delta) ?? messageOf(choice);
  return delivered !== undefined && countMessage(produced, delivered);
}

/** The message of a choice. On old completions servers, `text` takes its place and becomes its content. */
export function messageOf(choice: JsonObject): JsonObject | undefined {
  const message = objectOf(choice.message);
  const text = textOf(choice.text);
  if (text === undefined) return message;
  return message?.content ? message : { ...message, content: text };
}

/** Counts a delta or a whole message. @returns whether it contains output. */
function countMessage(produced: Produced, message: JsonObject): boolean {
  let found = countReasoning(produced, message);
  const calls = callsIn(message);
  countSignatures(produced, message, calls);
  found = countContent(produced, message.content) || found;
  found = produced.text(message.refusal) || found;
  for (const call of calls) {
    countCall(produced, call);
    found = true;
  }
  const audio = objectOf(message.audio);
  if (audio) found = produced.media(audio.data) || produced.text(audio.transcript) || found;
  for (const image of arrayOf(message.images)) found = countImage(produced, image) || found;
  // Citations are delivered, but their text comes from the search and not from the model.
  found = arrayOf(message.annotations).length > 0 || arrayOf(message.citations).length > 0 || found;
  return countUnknown(produced, message, KNOWN) || found;
}

/** Servers that send reasoning in several members repeat it: the longest counts. */
function countReasoning(produced: Produced, message: JsonObject): boolean {
  const { reasoning_content, reasoning, reasoning_details, thinking_blocks } = message;
  // Most messages have none.
  if (!isGiven(reasoning_content ?? reasoning ?? reasoning_details ?? thinking_blocks)) return false;
  const texts = [reasoning_content, reasoning].filter((text) => typeof text === "string");
  let sealed = false;
  const details: string[] = [];
  for (const item of [...arrayOf(reasoning_details), ...arrayOf(thinking_blocks)]) {
    const detail = objectOf(item);
    for (const text of [detail?.text, detail?.summary, detail?.thinking]) {
      if (typeof text === "string") details.push(text);
    }
    sealed = produced.opaque(detail?.data) || sealed;
  }
  const longest = [...texts, details.join("")].reduce((most, text) => (text.length > most.length ? text : most), "");
  return produced.text(longest) || sealed;
}

/**
 * Counts the thought signatures of a message or delta, including those of its calls. A server that sends one in several
 * members repeats it.
 */
function countSignatures(produced: Produced, message: JsonObject, calls: readonly JsonObject[]): void {
  const { reasoning_details, thinking_blocks, thought_signature, extra_content, provider_specific_fields } = message;
  const own = thought_signature ?? extra_content ?? provider_specific_fields ?? message.function;
  // Most messages have none of the members that are read below.
  if (calls.length === 0 && !isGiven(reasoning_details ?? thinking_blocks ?? own)) return;
  const signatures = new Set<unknown>();
  for (const item of [...arrayOf(reasoning_details), ...arrayOf(thinking_blocks)]) {
    signatures.add(objectOf(item)?.signature);
  }
  for (const holder of [message, ...calls]) {
    for (const one of [holder, objectOf(holder.function)])
      for (const signature of signaturesIn(one)) signatures.add(signature);
  }
  for (const signature of signatures) produced.signature(signature);
}

/** Thought signatures in the members of Gemini, Vertex and LiteLLM (`returned.ts`). */
function signaturesIn(holder: JsonObject | undefined): readonly unknown[] {
  const extra = objectOf(holder?.extra_content);
  const own = objectOf(holder?.provider_specific_fields);
  return [
    holder?.thought_signature,
    ...[extra?.google, extra?.vertex, own].map((maker) => objectOf(maker)?.thought_signature),
    ...arrayOf(own?.thought_signatures),
  ];
}

/** A string, or a list of parts. */
function countContent(produced: Produced, content: unknown): boolean {
  if (typeof content === "string") return produced.text(content);
  return produced.unknown(content);
}

const NO_CALLS: readonly JsonObject[] = [];

function callsIn(message: JsonObject): readonly JsonObject[] {
  if (!isGiven(message.tool_calls ?? message.function_call)) return NO_CALLS;
  const one = objectOf(message.tool_calls);
  const calls = one ? [one] : arrayOf(message.tool_calls).flatMap((item): JsonObject[] => [objectOf(item) ?? {}]);
  const deprecated = objectOf(message.function_call);
  return calls.length === 0 && deprecated ? [{ function: deprecated }] : calls;
}

function countCall(produced: Produced, call: JsonObject): void {
  const body = objectOf(call.function) ?? objectOf(call.custom);
  for (const value of [body?.name, body?.arguments, body?.input]) {
    if (typeof value === "string") produced.text(value);
    else produced.unknown(value);
  }
}

function countImage(produced: Produced, image: unknown): boolean {
  const part = objectOf(image);
  const url = objectOf(part?.image_url)?.url ?? part?.image_url ?? part?.b64_json ?? part?.data;
  return produced.media(url) || produced.unknown(image);
}
