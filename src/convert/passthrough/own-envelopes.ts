/**
 * Reasoning that was sealed here, in a request to a server of the client's own protocol. That server would refuse an
 * envelope as an invalid signature.
 * - An envelope that was sealed for a server of another protocol is removed. A model with routes of two protocols
 *   causes such requests when it fails over.
 * - An envelope in the id of an item is opened if it is this model's (docs/translation-rules.md rule 38).
 * Every other byte stays (ARCHITECTURE.md promise 6).
 */

import { type Refusal, refusal } from "../../values/errors.ts";
import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import { SEALED_PREFIX } from "../../values/sealed.ts";
import { findDoubledName, holdsText, type JsonScan, memberValue } from "../../wire/json.ts";
import type { ClientRequest, ConvertContext, RouteFacts } from "../exchange.ts";
import { openReasoning, originOf } from "../rules/envelope.ts";
import { type EditElement, editArray, withElements } from "./elements.ts";
import { hasThinkingBudget, isBareLoop, isThinking, thinkingOff, turnsOf, withoutThinking } from "./thinking-off.ts";

/** The route of the request, and the context that opens envelopes for it. */
interface Destination {
  readonly route: RouteFacts;
  readonly context: ConvertContext;
}

/** Edits of top-level members. */
interface OpenedMembers {
  /** Raw JSON by member name. */
  readonly set: Readonly<Record<string, string | Uint8Array>>;
  readonly remove: readonly string[];
  /** What the client asked for and the server does not get. */
  readonly dropped: readonly string[];
}

const AS_THEY_ARE: OpenedMembers = { set: {}, remove: [], dropped: [] };

/**
 * Makes the edits of top-level members; none for almost every request.
 * @param json the members after the preceding steps.
 * @param to undefined: no envelope is opened.
 * @param ofItem another edit of the items of `input`; undefined: none.
 * @returns a refusal if a member occurs twice next to an envelope: only one of the two is checked here, but both would
 * be sent.
 */
export function withoutEnvelopes(
  request: ClientRequest,
  json: Readonly<JsonObject>,
  to?: Destination,
  ofItem?: EditElement,
): OpenedMembers | Refusal {
  // Chat has no envelopes.
  const hasSome = request.protocol !== "chat" && holdsText(request.body, SEALED_PREFIX);
  if (!hasSome && !ofItem) return AS_THEY_ARE;
  const refused = hasSome ? refusedDouble(request) : undefined;
  if (refused) return refused;
  return request.protocol === "messages" ? ofMessages(request, json) : ofInput(request, to, ofItem);
}

/** The refusal of a member that occurs twice in a message, block or item with an envelope. */
function refusedDouble({ protocol, body, scan }: ClientRequest): Refusal | undefined {
  const list = LISTS[protocol];
  const inner = protocol === "messages" ? "content" : undefined;
  const doubled = findDoubledName(listOf(body, scan, list), inner, (element) => holdsText(element, SEALED_PREFIX));
  if (!doubled) return undefined;
  const param = `${list}[${doubled.index}].${doubled.name}`;
  return refusal("duplicate_field", { param, detail: `"${param}" occurs twice.` });
}

/** The member that holds the conversation. */
const LISTS: Readonly<Record<Protocol, string>> = { chat: "messages", messages: "messages", responses: "input" };

function listOf(body: Uint8Array, scan: JsonScan, list: string): Uint8Array {
  return memberValue(body, scan, list) ?? new Uint8Array();
}

/**
 * Removes all thinking of an assistant turn if one of its blocks is an envelope; a turn without other blocks is
 * removed.
 */
function ofMessages({ body, scan, json: written }: ClientRequest, json: Readonly<JsonObject>): OpenedMembers {
  const turns = turnsOf(written);
  const sealed = turns.map(({ blocks }) => blocks.some((block) => isThinking(block) && isEnvelope(block)));
  if (!sealed.includes(true)) return AS_THEY_ARE;
  const messages = editArray(listOf(body, scan, LISTS.messages), (message, index) => {
    const { blocks = [] } = turns[index] ?? {};
    if (!sealed[index]) return message;
    if (blocks.every(isThinking)) return undefined;
    return withElements(message, ["content"], (block, at) => (isThinking(blocks[at]) ? undefined : block));
  });
  // Whether this breaks a running tool loop: its last calls lose their thinking, or its beginning does. Some servers
  // check the one, some the other. If the loop had no thinking before, the client's request was already so.
  const last = turns.findLastIndex(({ role }) => role === "assistant");
  const isRunning = turns[last]?.blocks.some((block) => block?.type === "tool_use") === true;
  const left = () => withoutThinking(turns, (index) => sealed[index] === true);
  const isBroken = () => isRunning && (sealed[last] === true || (!isBareLoop(turns) && isBareLoop(left())));
  if (!hasThinkingBudget(json) || !isBroken()) return { ...AS_THEY_ARE, set: { messages } };
  // A thinking budget requires the thinking of a tool loop, so it is switched off (rule 27).
  const { set, remove } = thinkingOff(json);
  return { set: { ...set, messages }, remove, dropped: ["thinking"] };
}

function ofInput({ body, scan, json }: ClientRequest, to?: Destination, ofItem?: EditElement): OpenedMembers {
  const items = arrayOf(json.input).map(objectOf);
  const sealed = items.map((item) => item?.type === "reasoning" && isEnvelope(item));
  if (!sealed.includes(true) && !ofItem) return AS_THEY_ARE;
  const edit: EditElement = (raw, index) => {
    if (sealed[index]) return restored(items[index], to);
    return ofItem ? ofItem(raw, index) : raw;
  };
  return { ...AS_THEY_ARE, set: { input: editArray(listOf(body, scan, LISTS.responses), edit) } };
}

/** The item, if this route's own server made it; undefined otherwise. */
function restored(item: JsonObject | undefined, to: Destination | undefined): Uint8Array | undefined {
  const { encrypted_content: opaque } = item ?? {};
  const own = to && typeof opaque === "string" ? openReasoning(opaque, originOf(to.route), to.context) : undefined;
  return own?.length === 1 ? Buffer.from(JSON.stringify(own[0])) : undefined;
}

function isEnvelope(part: JsonObject | undefined): boolean {
  return part !== undefined && (isSealed(part.signature) || isSealed(part.data) || isSealed(part.encrypted_content));
}

function isSealed(opaque: unknown): boolean {
  return typeof opaque === "string" && opaque.startsWith(SEALED_PREFIX);
}
