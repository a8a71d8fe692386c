/**
 * Reasoning that was sealed here, in a request that goes to a server of the client's own protocol. That server would refuse
 * an envelope as a broken signature. One that was sealed for another protocol's server is taken out before sending: a model
 * with routes of two protocols makes such requests when it fails over. One that was sealed in the id of an item is opened,
 * if it is this model's (docs/translation-rules.md rule 38); every other byte stays (ARCHITECTURE.md promise 6).
 */

import { type Refusal, refusal } from "../../values/errors.ts";
import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { findDoubledName, holdsText, type JsonScan, memberValue } from "../../wire/json.ts";
import type { ClientRequest, ConvertContext, RouteFacts } from "../exchange.ts";
import { openReasoning, originOf } from "../rules/envelope.ts";
import { type EditElement, editArray, withElements } from "./elements.ts";

const PREFIX = "gw1.";

/** Where the request goes, and what opens envelopes for it. */
interface Destination {
  readonly route: RouteFacts;
  readonly context: ConvertContext;
}

/**
 * The top-level members that must change, as raw JSON by name; none in almost every request.
 * @param to undefined: none is opened.
 * @param ofItem what else becomes of the items of `input`; undefined: nothing.
 * @returns a refusal where a member stands twice beside an envelope: one of the two is read here, and both would be sent.
 */
export function withoutEnvelopes(
  request: ClientRequest,
  to?: Destination,
  ofItem?: EditElement,
): Record<string, string | Uint8Array> | Refusal {
  // Chat has no envelopes.
  const hasSome = request.protocol !== "chat" && holdsText(request.body, PREFIX);
  if (!hasSome && !ofItem) return {};
  const refused = hasSome ? refusedDouble(request) : undefined;
  if (refused) return refused;
  return request.protocol === "messages" ? ofMessages(request) : ofInput(request, to, ofItem);
}

/** The refusal of a member that stands twice in a message, block or item that holds an envelope. */
function refusedDouble({ protocol, body, scan }: ClientRequest): Refusal | undefined {
  const list = LISTS[protocol];
  const inner = protocol === "messages" ? "content" : undefined;
  const doubled = findDoubledName(listOf(body, scan, list), inner, (element) => holdsText(element, PREFIX));
  if (!doubled) return undefined;
  const param = `${list}[${doubled.index}].${doubled.name}`;
  return refusal("duplicate_field", { param, detail: `"${param}" stands twice.` });
}

/** The member that is a list of what was said. */
const LISTS: Readonly<Record<Protocol, string>> = { chat: "messages", messages: "messages", responses: "input" };

function listOf(body: Uint8Array, scan: JsonScan, list: string): Uint8Array {
  return memberValue(body, scan, list) ?? new Uint8Array();
}

/** All thinking of one assistant turn goes together; a turn of nothing else goes whole. */
function ofMessages({ body, scan, json }: ClientRequest): Record<string, string | Uint8Array> {
  const messages = arrayOf(json.messages).map((message) => arrayOf(objectOf(message)?.content).map(objectOf));
  const sealed = messages.map((blocks) => blocks.some((block) => isThinking(block) && isEnvelope(block)));
  if (!sealed.includes(true)) return {};
  const edited = editArray(listOf(body, scan, LISTS.messages), (message, index) => {
    const blocks = messages[index] ?? [];
    if (!sealed[index]) return message;
    if (blocks.every(isThinking)) return undefined;
    return withElements(message, ["content"], (block, at) => (isThinking(blocks[at]) ? undefined : block));
  });
  const set: Record<string, string | Uint8Array> = { messages: edited };
  // A thinking budget wants the thinking of a tool loop back; without it the loop goes on without (rule 27).
  const last = messages.findLastIndex((blocks) => blocks.some((block) => block?.type === "tool_use"));
  if (sealed[last] && objectOf(json.thinking)?.type === "enabled") set.thinking = '{"type":"disabled"}';
  return set;
}

function ofInput(
  { body, scan, json }: ClientRequest,
  to?: Destination,
  ofItem?: EditElement,
): Record<string, string | Uint8Array> {
  const items = arrayOf(json.input).map(objectOf);
  const sealed = items.map((item) => item?.type === "reasoning" && isEnvelope(item));
  if (!sealed.includes(true) && !ofItem) return {};
  const edit: EditElement = (raw, index) => {
    if (sealed[index]) return restored(items[index], to);
    return ofItem ? ofItem(raw, index) : raw;
  };
  return { input: editArray(listOf(body, scan, LISTS.responses), edit) };
}

/** The item that this route's own server has made; undefined for another's. */
function restored(item: JsonObject | undefined, to: Destination | undefined): Uint8Array | undefined {
  const { encrypted_content: opaque } = item ?? {};
  const own = to && typeof opaque === "string" ? openReasoning(opaque, originOf(to.route), to.context) : undefined;
  return own?.length === 1 ? Buffer.from(JSON.stringify(own[0])) : undefined;
}

function isThinking(block: JsonObject | undefined): boolean {
  return block?.type === "thinking" || block?.type === "redacted_thinking";
}

function isEnvelope(part: JsonObject | undefined): boolean {
  return part !== undefined && (isSealed(part.signature) || isSealed(part.data) || isSealed(part.encrypted_content));
}

function isSealed(opaque: unknown): boolean {
  return typeof opaque === "string" && opaque.startsWith(PREFIX);
}
