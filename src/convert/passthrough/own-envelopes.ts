/**
 * Reasoning that was sealed here, in a request that goes to a server of the client's own protocol. That server would refuse
 * an envelope as a broken signature. One that was sealed for another protocol's server is taken out before sending: a model
 * with routes of two protocols makes such requests when it fails over. One that was sealed in the id of an item is opened,
 * if it is this model's (docs/translation-rules.md rule 38); every other byte stays (ARCHITECTURE.md promise 6).
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

/** Where the request goes, and what opens envelopes for it. */
interface Destination {
  readonly route: RouteFacts;
  readonly context: ConvertContext;
}

/** What becomes of top-level members. */
interface OpenedMembers {
  /** Raw JSON by the name that gets it. */
  readonly set: Readonly<Record<string, string | Uint8Array>>;
  readonly remove: readonly string[];
  /** What the server does not get though the client asked for it. */
  readonly dropped: readonly string[];
}

const AS_THEY_ARE: OpenedMembers = { set: {}, remove: [], dropped: [] };

/**
 * The top-level members that must change; none in almost every request.
 * @param json the members as the rest of the route leaves them.
 * @param to undefined: none is opened.
 * @param ofItem what else becomes of the items of `input`; undefined: nothing.
 * @returns a refusal where a member stands twice beside an envelope: one of the two is read here, and both would be sent.
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

/** The refusal of a member that stands twice in a message, block or item that holds an envelope. */
function refusedDouble({ protocol, body, scan }: ClientRequest): Refusal | undefined {
  const list = LISTS[protocol];
  const inner = protocol === "messages" ? "content" : undefined;
  const doubled = findDoubledName(listOf(body, scan, list), inner, (element) => holdsText(element, SEALED_PREFIX));
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
  // A running loop that has lost the thinking of its last calls, or by this that at its beginning: some servers look at the one, some at
  // the other. One that was bare before is the client's own.
  const last = turns.findLastIndex(({ role }) => role === "assistant");
  const isRunning = turns[last]?.blocks.some((block) => block?.type === "tool_use") === true;
  const left = () => withoutThinking(turns, (index) => sealed[index] === true);
  const isBroken = () => isRunning && (sealed[last] === true || (!isBareLoop(turns) && isBareLoop(left())));
  if (!hasThinkingBudget(json) || !isBroken()) return { ...AS_THEY_ARE, set: { messages } };
  // A thinking budget wants the thinking of a tool loop back; without it the loop goes on without (rule 27).
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

/** The item that this route's own server has made; undefined for another's. */
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
