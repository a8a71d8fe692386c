/**
 * Reasoning that was sealed here for a server of another protocol, in a request that now goes to one of the client's own:
 * a model with routes of two protocols makes such requests when it fails over. That server would refuse an envelope as a
 * broken signature, so it is taken out before sending (docs/translation-rules.md rule 38); every other byte stays
 * (ARCHITECTURE.md promise 6).
 */

import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import { elementSpans, findNested, spliceNested } from "../../wire/json.ts";
import { asBuffer } from "../../wire/utf8.ts";
import type { ClientRequest } from "../exchange.ts";

const PREFIX = "gw1.";

/** The top-level members that must change, as raw JSON by name; none in almost every request. */
export function withoutEnvelopes(request: ClientRequest): Record<string, string | Uint8Array> {
  // Chat has no envelopes. A body that never begins a string with the prefix holds none.
  if (request.protocol === "chat" || asBuffer(request.body).indexOf(`"${PREFIX}`) < 0) return {};
  return request.protocol === "messages" ? ofMessages(request) : ofInput(request);
}

/** All thinking of one assistant turn goes together; a turn of nothing else goes whole. */
function ofMessages({ body, json }: ClientRequest): Record<string, string | Uint8Array> {
  const messages = arrayOf(json.messages).map((message) => arrayOf(objectOf(message)?.content).map(objectOf));
  const sealed = messages.map((blocks) => blocks.some((block) => isThinking(block) && isEnvelope(block)));
  if (!sealed.includes(true)) return {};
  const edited = editElements(body, ["messages"], (message, index) => {
    const blocks = messages[index] ?? [];
    if (!sealed[index]) return message;
    if (blocks.every(isThinking)) return undefined;
    const content = editElements(message, ["content"], (block, at) => (isThinking(blocks[at]) ? undefined : block));
    return spliceNested(message, ["content"], content.toString());
  });
  const set: Record<string, string | Uint8Array> = { messages: edited };
  // A thinking budget wants the thinking of a tool loop back; without it the loop goes on without (rule 27).
  const last = messages.findLastIndex((blocks) => blocks.some((block) => block?.type === "tool_use"));
  if (sealed[last] && objectOf(json.thinking)?.type === "enabled") set.thinking = '{"type":"disabled"}';
  return set;
}

function ofInput({ body, json }: ClientRequest): Record<string, string | Uint8Array> {
  const items = arrayOf(json.input).map(objectOf);
  const sealed = items.map((item) => item?.type === "reasoning" && isEnvelope(item));
  if (!sealed.includes(true)) return {};
  return { input: editElements(body, ["input"], (item, index) => (sealed[index] ? undefined : item)) };
}

function isThinking(block: JsonObject | undefined): boolean {
  return block?.type === "thinking" || block?.type === "redacted_thinking";
}

function isEnvelope(part: JsonObject | undefined): boolean {
  const opaque = part?.signature ?? part?.data ?? part?.encrypted_content;
  return typeof opaque === "string" && opaque.startsWith(PREFIX);
}

/** The array at a path with elements written anew, or left out where `edit` gives nothing. */
function editElements(
  body: Uint8Array,
  path: readonly string[],
  edit: (element: Uint8Array, index: number) => Uint8Array | undefined,
): Buffer {
  const span = findNested(body, path);
  const array = span ? body.subarray(span.start, span.end) : new Uint8Array();
  const pieces: Uint8Array[] = [];
  let index = 0;
  for (const { start, end } of elementSpans(array)) {
    const element = edit(array.subarray(start, end), index++);
    if (element) pieces.push(pieces.length === 0 ? OPEN : COMMA, element);
  }
  return Buffer.concat(pieces.length === 0 ? [OPEN, CLOSE] : [...pieces, CLOSE]);
}

const OPEN = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSE = Buffer.from("]");
