/**
 * A request without the reasoning of its earlier turns, for a server that has refused it as another account's, another
 * conversation's or another maker's (docs/translation-rules.md rule 38). Every other byte stays.
 */
import { arrayOf, type JsonObject, objectOf, textOf } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";
import { isJsonFault, scanJson, spliceJson } from "../wire/json.ts";
import type { ClientRequest } from "./exchange.ts";
import { editElements, withElements } from "./passthrough/elements.ts";

/** What the answer calls it among what was left out. */
export const LEFT_OUT = "reasoning";

/** The request without it; undefined where it has none that a server could refuse. */
export function withoutReasoning(request: ClientRequest): ClientRequest | undefined {
  const edits = EDITS[request.protocol](request);
  if (edits === undefined) return undefined;
  const { set, remove = [] } = edits;
  const body = spliceJson(request.body, request.scan, { set, remove });
  const scan = scanJson(body);
  if (isJsonFault(scan)) throw new Error("a body lost its form when its reasoning was taken out");
  const json: Record<string, unknown> = { ...request.json };
  for (const [name, value] of Object.entries(set)) json[name] = JSON.parse(Buffer.from(value).toString());
  for (const name of remove) delete json[name];
  return { ...request, body, scan, json };
}

type LessEdits = { readonly set: Readonly<Record<string, Buffer>>; readonly remove?: readonly string[] } | undefined;

const EDITS: Readonly<Record<Protocol, (request: ClientRequest) => LessEdits>> = {
  // Its reasoning is text, which nobody has signed.
  chat: () => undefined,
  messages({ body, json }): LessEdits {
    const messages = arrayOf(json.messages).map((message) => arrayOf(objectOf(message)?.content).map(objectOf));
    if (!messages.some((blocks) => blocks.some(isThinking))) return undefined;
    const edited = editElements(body, ["messages"], (message, index) => {
      const blocks = messages[index] ?? [];
      if (!blocks.some(isThinking)) return message;
      if (blocks.every(isThinking)) return undefined;
      return withElements(message, ["content"], (block, at) => (isThinking(blocks[at]) ? undefined : block));
    });
    // With a thinking budget, the turn of an unfinished tool loop must begin with its thinking: it goes on without (rule 27).
    const lastTurn = arrayOf(json.messages).findLastIndex((message) => objectOf(message)?.role === "user");
    const isLoop = messages[lastTurn]?.some((block) => block?.type === "tool_result");
    const isBudget = objectOf(json.thinking)?.type === "enabled";
    if (!isLoop || !isBudget) return { set: { messages: edited } };
    const off = { messages: edited, thinking: Buffer.from('{"type":"disabled"}') };
    return clearsThinking(json) ? withoutClearing(json, off) : { set: off };
  },
  responses({ body, json }) {
    const items = arrayOf(json.input).map(objectOf);
    if (!items.some(isSealedReasoning)) return undefined;
    const input = editElements(body, ["input"], (item, index) => (isSealedReasoning(items[index]) ? undefined : item));
    return { set: { input } };
  },
};

/** Whether earlier thinking is to be cleared, which servers take only where there is thinking. */
function clearsThinking(json: JsonObject): boolean {
  return arrayOf(objectOf(json.context_management)?.edits).some(isClearing);
}

function isClearing(edit: unknown): boolean {
  return textOf(objectOf(edit)?.type)?.startsWith("clear_thinking_") === true;
}

function withoutClearing(json: JsonObject, set: Readonly<Record<string, Buffer>>): LessEdits {
  const managed = objectOf(json.context_management);
  const edits = arrayOf(managed?.edits).filter((edit) => !isClearing(edit));
  if (edits.length === 0) return { set, remove: ["context_management"] };
  return { set: { ...set, context_management: Buffer.from(JSON.stringify({ ...managed, edits })) } };
}

function isThinking(block: JsonObject | undefined): boolean {
  return block?.type === "thinking" || block?.type === "redacted_thinking";
}

function isSealedReasoning(item: JsonObject | undefined): boolean {
  return item?.type === "reasoning" && typeof item.encrypted_content === "string";
}
