/**
 * A request without the reasoning of its earlier turns, for a server that has refused it as another account's, another
 * conversation's or another maker's (docs/translation-rules.md rule 38). Every other byte stays.
 */
import { arrayOf, type JsonObject, objectOf } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";
import { isJsonFault, scanJson, spliceJson, spliceNested } from "../wire/json.ts";
import type { ClientRequest } from "./exchange.ts";
import { editElements } from "./passthrough/elements.ts";

/** What the answer calls it among what was left out. */
export const LEFT_OUT = "reasoning";

/** The request without it; undefined where it has none that a server could refuse. */
export function withoutReasoning(request: ClientRequest): ClientRequest | undefined {
  const set = EDITS[request.protocol](request);
  if (set === undefined) return undefined;
  const body = spliceJson(request.body, request.scan, { set });
  const scan = scanJson(body);
  if (isJsonFault(scan)) throw new Error("a body lost its form when its reasoning was taken out");
  const json: Record<string, unknown> = { ...request.json };
  for (const [name, value] of Object.entries(set)) json[name] = JSON.parse(Buffer.from(value).toString());
  return { ...request, body, scan, json };
}

type LessEdits = Readonly<Record<string, Buffer>> | undefined;

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
      const content = editElements(message, ["content"], (block, at) => (isThinking(blocks[at]) ? undefined : block));
      return spliceNested(message, ["content"], content.toString());
    });
    // With a thinking budget, the turn of an unfinished tool loop must begin with its thinking: it goes on without (rule 27).
    const isLoop = messages.at(-1)?.some((block) => block?.type === "tool_result");
    const isBudget = objectOf(json.thinking)?.type === "enabled";
    if (!isLoop || !isBudget) return { messages: edited };
    return { messages: edited, thinking: Buffer.from('{"type":"disabled"}') };
  },
  responses({ body, json }) {
    const items = arrayOf(json.input).map(objectOf);
    if (!items.some(isSealedReasoning)) return undefined;
    return {
      input: editElements(body, ["input"], (item, index) => (isSealedReasoning(items[index]) ? undefined : item)),
    };
  },
};

function isThinking(block: JsonObject | undefined): boolean {
  return block?.type === "thinking" || block?.type === "redacted_thinking";
}

function isSealedReasoning(item: JsonObject | undefined): boolean {
  return item?.type === "reasoning" && typeof item.encrypted_content === "string";
}
