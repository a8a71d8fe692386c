/**
 * Removes the reasoning of earlier turns from a request, for a server that refused it because it came from another
 * account, conversation or vendor (docs/translation-rules.md rule 38). Every other byte stays.
 */
import { arrayOf, type JsonObject, objectOf } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";
import { isJsonFault, scanJson, spliceJson } from "../wire/json.ts";
import type { ClientRequest } from "./exchange.ts";
import { editElements, withElements } from "./passthrough/elements.ts";
import {
  hasThinkingBudget,
  isBareLoop,
  isThinking,
  thinkingOff,
  turnsOf,
  withoutThinking,
} from "./passthrough/thinking-off.ts";

/** The name of the loss in the `x-tollgate-translation` header. */
export const LEFT_OUT = "reasoning";

/** The request without reasoning; undefined if it has none that a server could refuse. */
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

type LessEdits =
  | { readonly set: Readonly<Record<string, string | Uint8Array>>; readonly remove?: readonly string[] }
  | undefined;

const EDITS: Readonly<Record<Protocol, (request: ClientRequest) => LessEdits>> = {
  // Chat reasoning is plain text without a signature.
  chat: () => undefined,
  messages({ body, json }): LessEdits {
    const turns = turnsOf(json);
    if (!turns.some(({ blocks }) => blocks.some(isThinking))) return undefined;
    const messages = editElements(body, ["messages"], (message, index) => {
      const { blocks = [] } = turns[index] ?? {};
      if (!blocks.some(isThinking)) return message;
      if (blocks.every(isThinking)) return undefined;
      return withElements(message, ["content"], (block, at) => (isThinking(blocks[at]) ? undefined : block));
    });
    // With a thinking budget, the turn of an unfinished tool loop must begin with its thinking. So the budget is
    // switched off (rule 27).
    if (!hasThinkingBudget(json) || !isBareLoop(withoutThinking(turns, () => true))) return { set: { messages } };
    const { set, remove } = thinkingOff(json);
    return { set: { ...set, messages }, remove };
  },
  responses({ body, json }) {
    const items = arrayOf(json.input).map(objectOf);
    if (!items.some(isSealedReasoning)) return undefined;
    const input = editElements(body, ["input"], (item, index) => (isSealedReasoning(items[index]) ? undefined : item));
    return { set: { input } };
  },
};

function isSealedReasoning(item: JsonObject | undefined): boolean {
  return item?.type === "reasoning" && typeof item.encrypted_content === "string";
}
