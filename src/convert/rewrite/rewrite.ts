/**
 * Applies the operator's rules to a body before it is sent upstream: members are dropped, set and filled in; system
 * text is added or cleaned. Only the members that a rule names change; every other byte stays (ARCHITECTURE.md promise
 * 6).
 */

import type { Protocol } from "../../values/protocol.ts";
import type { RuleAction } from "../../values/rules.ts";
import { elementSpans, findNested, type JsonScan, type JsonSpan } from "../../wire/json.ts";
import { isBlank, withoutAttribution } from "../rules/system.ts";
import { BodyDraft, isNull } from "./body-draft.ts";

/**
 * Applies actions in their order; edits of headers are skipped.
 * @param body a valid body of the target's protocol: the client's own or a translated one.
 * @param scan the scan of this body, if there is one.
 * @returns the same body if nothing changes.
 */
export function rewriteBody(
  body: Uint8Array,
  target: RewriteTarget,
  actions: readonly RuleAction[],
  scan?: JsonScan,
): Uint8Array {
  if (actions.every((action) => action.kind === "header")) return body;
  const draft = new BodyDraft(body, scan);
  for (const action of actions) apply(draft, action, target);
  return draft.finish();
}

function apply(draft: BodyDraft, action: RuleAction, target: RewriteTarget): void {
  if (action.kind === "drop") for (const path of action.paths) draft.drop(path);
  if (action.kind === "set") for (const { path, json } of action.members) draft.set(path, json);
  if (action.kind === "default") for (const { path, json } of action.members) draft.fillIn(path, json);
  if (action.kind === "system") addSystemText(draft, action, target);
  // The line exists in this protocol only.
  if (action.kind === "strip_attribution" && target.protocol === "messages") stripAttribution(draft);
}

/* System text in the form of each protocol, added and cleaned at byte level. */

/** The upstream that a body is for. */
interface RewriteTarget {
  readonly protocol: Protocol;
  /** The role that a chat upstream needs for a system message. */
  readonly systemRole: "system" | "developer";
}

type SystemText = Omit<Extract<RuleAction, { kind: "system" }>, "kind">;

/**
 * Adds a text before or after the client's own system text, separated by a blank line. A body without the required form
 * is left for the upstream to refuse.
 */
function addSystemText(draft: BodyDraft, added: SystemText, target: RewriteTarget): void {
  ADD[target.protocol](draft, added, target);
}

const ADD: Readonly<Record<Protocol, (draft: BodyDraft, added: SystemText, target: RewriteTarget) => void>> = {
  chat(draft, added, { systemRole }) {
    const messages = draft.value("messages");
    if (messages && isArray(messages)) draft.put("messages", withSystemMessage(messages, added, systemRole));
  },
  messages(draft, added) {
    const system = draft.value("system");
    const absent = system === undefined || isNull(system);
    draft.put("system", absent ? JSON.stringify(added.text) : (withText(system, added) ?? system));
  },
  responses(draft, added) {
    const instructions = draft.value("instructions");
    if (instructions === undefined || isNull(instructions)) draft.put("instructions", JSON.stringify(added.text));
    else if (isString(instructions)) draft.put("instructions", joined(instructions, added));
  },
};

/**
 * Adds the text to the client's system message at the beginning of the conversation, because some chat templates take
 * only one. Without such a message, the text becomes a message of its own.
 */
function withSystemMessage(messages: Uint8Array, added: SystemText, role: string): Uint8Array {
  const fresh = JSON.stringify({ role, content: added.text });
  const span = leadingSystem(messages, added.at);
  if (!span) return withElement(messages, fresh, "start");
  const message = messages.subarray(span.start, span.end);
  const content = findNested(message, ["content"]);
  const extended = content && withText(message.subarray(content.start, content.end), added);
  if (content && extended) return replaced(messages, span, replaced(message, content, extended));
  if (added.at === "start") return withElement(messages, fresh, "start");
  return replaced(messages, { start: span.end, end: span.end }, Buffer.from(`,${fresh}`));
}

const SYSTEM_ROLES: ReadonlySet<unknown> = new Set(["system", "developer"]);

/** The first, or the last, of the leading system messages. */
function leadingSystem(messages: Uint8Array, at: "start" | "end"): JsonSpan | undefined {
  let found: JsonSpan | undefined;
  for (const span of elementSpans(messages)) {
    const message = messages.subarray(span.start, span.end);
    if (!SYSTEM_ROLES.has(stringAt(message, "role"))) break;
    found = span;
    if (at === "start") break;
  }
  return found;
}

/** A text value with more text: a string, or a list of text parts; undefined for anything else. */
function withText(raw: Uint8Array, added: SystemText): Uint8Array | undefined {
  if (isString(raw)) return joined(raw, added);
  return isArray(raw) ? withElement(raw, JSON.stringify({ type: "text", text: added.text }), added.at) : undefined;
}

/** Two texts as one JSON string; the client's text keeps its escapes. */
function joined(raw: Uint8Array, { text, at }: SystemText): Buffer {
  const own = Buffer.from(raw).toString("utf8").slice(1, -1);
  const ours = JSON.stringify(text).slice(1, -1);
  if (own === "") return Buffer.from(`"${ours}"`);
  return Buffer.from(at === "start" ? `"${ours}\\n\\n${own}"` : `"${own}\\n\\n${ours}"`);
}

function withElement(array: Uint8Array, json: string, at: "start" | "end"): Uint8Array {
  const empty = elementSpans(array).next().done === true;
  const place = at === "start" ? 1 : array.length - 1;
  const text = empty ? json : at === "start" ? `${json},` : `,${json}`;
  return replaced(array, { start: place, end: place }, Buffer.from(text));
}

/**
 * Removes Claude Code's attribution line from the system text of a messages body: its nonce changes with each request
 * and defeats prompt caches (docs/translation-rules.md rule 11). On translated routes the codec does the same.
 */
function stripAttribution(draft: BodyDraft): void {
  const system = draft.value("system");
  if (system === undefined) return;
  const cleaned = isArray(system) ? cleanedBlocks(system) : isString(system) ? cleanedText(system) : system;
  if (cleaned === undefined) draft.remove("system");
  else if (cleaned !== system) draft.put("system", cleaned);
}

/** A JSON string without the line; the same bytes if it has none; undefined if nothing is left. */
function cleanedText(raw: Uint8Array): Uint8Array | undefined {
  const text = JSON.parse(Buffer.from(raw).toString("utf8")) as string;
  const cleaned = withoutAttribution(text);
  if (cleaned === text) return raw;
  return isBlank(cleaned) ? undefined : Buffer.from(JSON.stringify(cleaned));
}

/** System blocks without the line, in one pass; a block with nothing else is removed. */
function cleanedBlocks(blocks: Uint8Array): Uint8Array | undefined {
  const pieces: Uint8Array[] = [];
  let changed = false;
  let kept = 0;
  let read = 0;
  for (const { start, end } of elementSpans(blocks)) {
    const block = blocks.subarray(start, end);
    const cleaned = cleanedBlock(block);
    changed ||= cleaned !== block;
    if (cleaned) {
      // The bytes before the first block are the bracket; before each other block, the comma.
      pieces.push(kept === 0 ? blocks.subarray(0, firstSpace(blocks)) : blocks.subarray(read, start), cleaned);
      kept += 1;
    }
    read = end;
  }
  if (!changed) return blocks;
  return kept === 0 ? undefined : Buffer.concat([...pieces, blocks.subarray(read)]);
}

function cleanedBlock(block: Uint8Array): Uint8Array | undefined {
  const span = findNested(block, ["text"]);
  if (!span || block[span.start] !== QUOTE) return block;
  const text = block.subarray(span.start, span.end);
  const cleaned = cleanedText(text);
  return cleaned === text ? block : cleaned && replaced(block, span, cleaned);
}

/** The position after an array's opening bracket and the blanks that follow it. */
function firstSpace(array: Uint8Array): number {
  return elementSpans(array).next().value?.start ?? 1;
}

const QUOTE = 0x22;
const OPEN_ARRAY = 0x5b;

function isString(raw: Uint8Array): boolean {
  return raw[0] === QUOTE;
}

function isArray(raw: Uint8Array): boolean {
  return raw[0] === OPEN_ARRAY;
}

function stringAt(object: Uint8Array, name: string): unknown {
  const span = findNested(object, [name]);
  if (!span || object[span.start] !== QUOTE) return undefined;
  return JSON.parse(Buffer.from(object.subarray(span.start, span.end)).toString("utf8"));
}

function replaced(bytes: Uint8Array, { start, end }: JsonSpan, by: Uint8Array): Uint8Array {
  return Buffer.concat([bytes.subarray(0, start), by, bytes.subarray(end)]);
}
