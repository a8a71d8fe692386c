/**
 * Reasoning that was sealed here, in a request that goes to a server of the client's own protocol. That server would refuse
 * an envelope as a broken signature. One that was sealed for another protocol's server is taken out before sending: a model
 * with routes of two protocols makes such requests when it fails over. One that was sealed in the id of an item is opened,
 * if it is this model's (docs/translation-rules.md rule 38); every other byte stays (ARCHITECTURE.md promise 6).
 */

import { type Refusal, refusal } from "../../values/errors.ts";
import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import { elementSpans, findNested, holdsText, memberSpans, spliceNested } from "../../wire/json.ts";
import type { ClientRequest, ConvertContext, RouteFacts } from "../exchange.ts";
import { openReasoning, originOf } from "../rules/envelope.ts";
import { editElements } from "./elements.ts";

const PREFIX = "gw1.";

/** An item's bytes to others; undefined: it is left out. */
type EditItem = (raw: Uint8Array, index: number) => Uint8Array | undefined;

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
  ofItem?: EditItem,
): Record<string, string | Uint8Array> | Refusal {
  // Chat has no envelopes.
  const hasSome = request.protocol !== "chat" && holdsText(request.body, PREFIX);
  if (!hasSome && !ofItem) return {};
  const refused = hasSome ? refusedDouble(request) : undefined;
  if (refused) return refused;
  return request.protocol === "messages" ? ofMessages(request) : ofInput(request, to, ofItem);
}

/** The refusal of a member that stands twice in a message, block or item that holds an envelope. */
function refusedDouble({ protocol, body }: ClientRequest): Refusal | undefined {
  const list = protocol === "messages" ? "messages" : "input";
  for (const [index, raw] of elementsAt(body, [list]).entries()) {
    if (!holdsText(raw, PREFIX)) continue;
    const blocks = protocol === "messages" ? elementsAt(raw, ["content"]) : [];
    const name = doubledIn(raw) ?? blocks.map(doubledIn).find((one) => one !== undefined);
    if (name === undefined) continue;
    const param = `${list}[${index}].${name}`;
    return refusal("duplicate_field", { param, detail: `"${param}" stands twice.` });
  }
  return undefined;
}

function elementsAt(body: Uint8Array, path: readonly string[]): readonly Uint8Array[] {
  const span = findNested(body, path);
  const array = span ? body.subarray(span.start, span.end) : new Uint8Array();
  return Array.from(elementSpans(array), ({ start, end }) => array.subarray(start, end));
}

function doubledIn(object: Uint8Array): string | undefined {
  const seen = new Set<string>();
  for (const { name } of memberSpans(object)) {
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
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

function ofInput(
  { body, json }: ClientRequest,
  to?: Destination,
  ofItem?: EditItem,
): Record<string, string | Uint8Array> {
  const items = arrayOf(json.input).map(objectOf);
  const sealed = items.map((item) => item?.type === "reasoning" && isEnvelope(item));
  if (!sealed.includes(true) && !ofItem) return {};
  const edit: EditItem = (raw, index) => {
    if (sealed[index]) return restored(items[index], to);
    return ofItem ? ofItem(raw, index) : raw;
  };
  return { input: editElements(body, ["input"], edit) };
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
  const opaque = [part?.signature, part?.data, part?.encrypted_content];
  return opaque.some((one) => typeof one === "string" && one.startsWith(PREFIX));
}
