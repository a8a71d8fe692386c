/**
 * For a server that answers with one JSON object although a stream was asked for. Its reply is converted to the stream
 * that its own protocol would have made of it, so passthrough and translation need no special case
 * (docs/translation-rules.md rule 53).
 */

import { arrayOf, type JsonObject, objectOf, objectsIn } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";
import type { Usage } from "../values/tokens/usage.ts";
import { sseFrame } from "../wire/sse.ts";
import { mayBecomeBom, withoutBom } from "../wire/utf8.ts";
import { messageOf } from "./chat/produced.ts";
import { deltaOf, failureWordOf } from "./chat/reply-decode.ts";
import { withCount } from "./counted-fault.ts";
import type { AttemptCounts, ClientFrames, StreamConverter, UpstreamFault } from "./exchange.ts";
import { parseWithDigits } from "./json-exact.ts";
import { nestsWithin } from "./reply/depth.ts";
import { parseReply } from "./reply/parse.ts";
import type { Emit } from "./responses/item-writer.ts";
import { faultOf } from "./responses/reply-decode.ts";
import { finishOf } from "./rules/finish-words.ts";
import { beyondLimit, brokenOff, errorIn, invalid } from "./watch.ts";

/** The largest object that is kept in place of a stream. Dispatch waits for 4 MiB at most (docs/errors.md). */
const WHOLE_BYTES_MAX = 32 * 1024 * 1024;

const NO_BYTES = new Uint8Array();
const OPEN_BRACE = 0x7b;
const BLANKS: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Converts a stream, or an object in its place. No frame of a stream begins with a brace. */
export class StreamOrWhole implements StreamConverter {
  readonly #protocol: Protocol;
  readonly #stream: StreamConverter;
  /** `blank`: only white space has come. */
  #form: "unknown" | "blank" | "stream" | "whole" = "unknown";
  /** The first bytes, if they may be part of a byte order mark. */
  #held: Uint8Array = NO_BYTES;
  #pieces: Uint8Array[] = [];
  #bytes = 0;
  #fault: UpstreamFault | undefined;

  /** @param protocol the upstream's. */
  constructor(protocol: Protocol, stream: StreamConverter) {
    this.#protocol = protocol;
    this.#stream = stream;
  }

  push(chunk: Uint8Array): readonly ClientFrames[] {
    if (this.#form === "stream") return this.#stream.push(chunk);
    if (this.#form === "whole") return this.#keep(chunk);
    const begun = this.#form === "unknown" ? this.#afterMark(chunk) : chunk;
    if (begun === undefined) return [];
    const first = begun.find((byte) => !BLANKS.has(byte));
    this.#form = first === undefined ? "blank" : first === OPEN_BRACE ? "whole" : "stream";
    // Blank lines before the first frame have no meaning.
    return this.#form === "whole" ? this.#keep(begun) : this.#stream.push(begun);
  }

  #keep(chunk: Uint8Array): readonly ClientFrames[] {
    this.#bytes += chunk.length;
    if (this.#bytes > WHOLE_BYTES_MAX) this.#fault = beyondLimit("the reply is too large");
    else this.#pieces.push(chunk);
    return [];
  }

  /**
   * The beginning of the reply without a byte order mark: HTML section 9.2.6 and RFC 8259 section 8.1 let a reader
   * ignore it, and not every client does. Undefined while too little has come.
   */
  #afterMark(chunk: Uint8Array): Uint8Array | undefined {
    const begun = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    const isOpen = mayBecomeBom(begun);
    this.#held = isOpen ? begun : NO_BYTES;
    return isOpen ? undefined : withoutBom(begun);
  }

  end(): readonly ClientFrames[] {
    if (this.#form !== "whole" || this.#fault) {
      const begun = this.#held.length === 0 ? [] : this.#stream.push(this.#held);
      return [...begun, ...this.#stream.end()];
    }
    const { json, fault } = parseReply(Buffer.concat(this.#pieces), this.#protocol, parseWithDigits);
    this.#pieces = [];
    const refused = json && FAULTS[this.#protocol](json);
    if (fault) this.#fault = fault;
    else if (refused) this.#fault = withCount(refused, this.#protocol, json);
    else if (!nestsWithin(json)) this.#fault = beyondLimit("the reply nests too deep");
    if (!json || this.#fault) return [];
    return [...this.#stream.push(Buffer.concat(FRAMES[this.#protocol](json))), ...this.#stream.end()];
  }

  get fault(): UpstreamFault | undefined {
    return this.#fault ?? this.#stream.fault;
  }

  get ended(): boolean {
    return this.#stream.ended;
  }

  get opened(): boolean {
    return this.#stream.opened;
  }

  get keptId(): string | undefined {
    return this.#stream.keptId;
  }

  get draining(): boolean {
    return this.#stream.draining;
  }

  counts(): AttemptCounts {
    return this.#stream.counts();
  }

  fail(...args: Parameters<StreamConverter["fail"]>): Uint8Array {
    return this.#stream.fail(...args);
  }

  truncate(usage: Usage): readonly ClientFrames[] {
    return this.#stream.truncate(usage);
  }

  heartbeat(): Uint8Array | undefined {
    return this.#stream.heartbeat();
  }
}

/** An object that is not a reply becomes one event and is handled as such: as an error, or as an unknown event. */
function asOneEvent(json: JsonObject, name: string | undefined): readonly Uint8Array[] {
  return [sseFrame(JSON.stringify(json), name)];
}

/**
 * Why an object is not an answer, if the stream made of it would look like one: nothing has been sent to the client yet,
 * so another upstream can be tried, as for a whole reply.
 */
const FAULTS: Readonly<Record<Protocol, (json: JsonObject) => UpstreamFault | undefined>> = {
  chat(json) {
    if (errorIn(json) || !Array.isArray(json.choices)) return undefined;
    const [first] = objectsIn(json.choices);
    if (!first || !messageOf(first)) return invalid("a chat completion without a choice");
    const word = failureWordOf(first);
    return word === undefined ? undefined : brokenOff(word);
  },
  messages({ stop_reason }) {
    return finishOf(stop_reason) === "failure" ? brokenOff(stop_reason) : undefined;
  },
  responses: faultOf,
};

const FRAMES: Readonly<Record<Protocol, (json: JsonObject) => readonly Uint8Array[]>> = {
  chat: chatFrames,
  messages: messagesFrames,
  responses: responsesFrames,
};

// --------------------------------------------------------------------------------------------------------------- chat

/** Each message as one delta, then the finish reasons, then the usage. */
function chatFrames(json: JsonObject): readonly Uint8Array[] {
  const { choices, usage, ...rest } = json;
  if (errorIn(json) || !Array.isArray(choices)) return asOneEvent(json, undefined);
  const head = { ...rest, object: "chat.completion.chunk" };
  const chunk = (members: JsonObject) => sseFrame(JSON.stringify({ ...head, ...members }));
  const contents = objectsIn(choices).map(({ message, text, finish_reason: _, ...choice }) => ({
    ...choice,
    delta: deltaOf(messageOf({ message, text }) ?? {}),
    finish_reason: null,
  }));
  const ended = objectsIn(choices).map(({ message: _, text: __, logprobs: ___, ...choice }) => ({
    ...choice,
    delta: {},
  }));
  const counted = objectOf(usage) ? [chunk({ choices: [], usage })] : [];
  return [chunk({ choices: contents }), chunk({ choices: ended }), ...counted, sseFrame("[DONE]")];
}

// ----------------------------------------------------------------------------------------------------------- messages

function messagesFrames(json: JsonObject): readonly Uint8Array[] {
  if (json.type === "error" || errorIn(json)) return asOneEvent({ ...json, type: "error" }, "error");
  if (!Array.isArray(json.content)) return asOneEvent(json, undefined);
  const { content, stop_reason, stop_sequence, stop_details, ...head } = json;
  const message = { ...head, content: [], stop_reason: null, stop_sequence: null };
  const frames = [typed("message_start", { message })];
  for (const [index, block] of objectsIn(content).entries()) {
    const { opening, deltas } = blockParts(block);
    frames.push(typed("content_block_start", { index, content_block: opening }));
    for (const delta of deltas) frames.push(typed("content_block_delta", { index, delta }));
    frames.push(typed("content_block_stop", { index }));
  }
  const delta = { stop_reason, stop_sequence, stop_details };
  frames.push(typed("message_delta", { delta, usage: json.usage }), typed("message_stop", {}));
  return frames;
}

function typed(type: string, members: JsonObject): Uint8Array {
  return sseFrame(JSON.stringify({ type, ...members }), type);
}

/** A block as it opens, and the deltas that complete it. */
function blockParts(block: JsonObject): { readonly opening: JsonObject; readonly deltas: readonly JsonObject[] } {
  if (block.type === "text") {
    const citations = arrayOf(block.citations).map((citation) => ({ type: "citations_delta", citation }));
    const opening = { ...block, text: "", citations: citations.length > 0 ? [] : block.citations };
    return { opening, deltas: [...citations, { type: "text_delta", text: block.text }] };
  }
  if (block.type === "thinking") {
    const signed = block.signature ? [{ type: "signature_delta", signature: block.signature }] : [];
    const opening = { ...block, thinking: "", signature: "" };
    return { opening, deltas: [{ type: "thinking_delta", thinking: block.thinking }, ...signed] };
  }
  // A call without arguments has no delta, and no output but its name.
  if (Object.keys(objectOf(block.input) ?? {}).length === 0) return { opening: block, deltas: [] };
  const partial_json = JSON.stringify(block.input);
  return { opening: { ...block, input: {} }, deltas: [{ type: "input_json_delta", partial_json }] };
}

// ---------------------------------------------------------------------------------------------------------- responses

function responsesFrames(json: JsonObject): readonly Uint8Array[] {
  let number = 0;
  const frames: Uint8Array[] = [];
  const emit = (type: string, members: JsonObject) => {
    frames.push(sseFrame(JSON.stringify({ type, sequence_number: number++, ...members }), type));
  };
  const begun = { ...json, status: "in_progress", output: [], usage: null, error: null, incomplete_details: null };
  emit("response.created", { response: begun });
  for (const [output_index, item] of objectsIn(json.output).entries()) emitItem(item, output_index, emit);
  emit(`response.${json.status === "incomplete" ? "incomplete" : "completed"}`, { response: json });
  return frames;
}

function emitItem(item: JsonObject, output_index: number, emit: Emit): void {
  const place = { item_id: item.id, output_index };
  const opening: Record<string, unknown> = { ...item, status: "in_progress" };
  for (const member of ["content", "summary"]) if (Array.isArray(item[member])) opening[member] = [];
  const call = CALLS.get(item.type);
  if (call) opening[call.member] = "";
  emit("response.output_item.added", { output_index, item: opening });
  for (const [content_index, part] of objectsIn(item.content).entries()) {
    const form = PARTS.get(part.type);
    const opened = { ...part, ...(form && { [form.member]: "" }), ...(part.annotations ? { annotations: [] } : {}) };
    emit("response.content_part.added", { ...place, content_index, part: opened });
    if (form) emitText(form, part, { ...place, content_index }, emit);
    emit("response.content_part.done", { ...place, content_index, part });
  }
  for (const [summary_index, part] of objectsIn(item.summary).entries()) {
    const at = { ...place, summary_index };
    emit("response.reasoning_summary_part.added", { ...at, part: { ...part, text: "" } });
    emitText(SUMMARY, part, at, emit);
    emit("response.reasoning_summary_part.done", { ...at, part });
  }
  if (call && typeof item[call.member] === "string") {
    emit(`${call.stem}.delta`, { ...place, delta: item[call.member] });
    emit(`${call.stem}.done`, { ...place, [call.member]: item[call.member] });
  }
  emit("response.output_item.done", { output_index, item });
}

interface TextForm {
  readonly stem: string;
  readonly member: "text" | "refusal";
}

function emitText({ stem, member }: TextForm, part: JsonObject, place: JsonObject, emit: Emit): void {
  const probabilities = part.type === "output_text" ? { logprobs: part.logprobs ?? [] } : {};
  emit(`${stem}.delta`, { ...place, delta: part[member] ?? "", ...probabilities });
  for (const [annotation_index, annotation] of arrayOf(part.annotations).entries()) {
    emit("response.output_text.annotation.added", { ...place, annotation_index, annotation });
  }
  emit(`${stem}.done`, { ...place, [member]: part[member] ?? "", ...probabilities });
}

const PARTS: ReadonlyMap<unknown, TextForm> = new Map([
  ["output_text", { stem: "response.output_text", member: "text" }],
  ["refusal", { stem: "response.refusal", member: "refusal" }],
  ["reasoning_text", { stem: "response.reasoning_text", member: "text" }],
] as const);

const SUMMARY: TextForm = { stem: "response.reasoning_summary_text", member: "text" };

const CALLS: ReadonlyMap<unknown, { readonly stem: string; readonly member: string }> = new Map([
  ["function_call", { stem: "response.function_call_arguments", member: "arguments" }],
  ["custom_tool_call", { stem: "response.custom_tool_call_input", member: "input" }],
]);
