/**
 * Files that a model's code has made, in a conversation that comes back: a result of code execution names each by an id, which
 * is the upstream's credential's holder's, and so everybody's (ARCHITECTURE.md promise 14). Clients send back what they were
 * given, so a result loses the files, which are named, and its text goes on; nothing that is sent could tell whose they are.
 */
import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import { holdsText, isJsonFault, scanJson, spliceJson, spliceNested } from "../../wire/json.ts";
import type { ClientRequest } from "../exchange.ts";
import { editElements } from "./elements.ts";
import type { Left } from "./hosted-tools.ts";

/** Blocks that hold a result of code, and in it a list of what it made. */
const RESULTS: ReadonlySet<unknown> = new Set(["code_execution_tool_result", "bash_code_execution_tool_result"]);
/** What stands in that list for a file. */
const FILES: ReadonlySet<unknown> = new Set(["code_execution_output", "bash_code_execution_output"]);
/** How the types of FILES end, for a look at the bytes. */
const WORD = 'code_execution_output"';

/** The request without files that its results of code name; every other byte stays. */
export function withoutMadeFiles(request: ClientRequest): Left {
  const { protocol, body, scan, json } = request;
  if (protocol !== "messages" || !holdsText(body, WORD)) return { request, dropped: [] };
  const dropped = new Set<string>();
  const messages = arrayOf(json.messages).map(objectOf);
  const edited = editElements(body, ["messages"], (message, index) => {
    const blocks = arrayOf(messages[index]?.content).map(objectOf);
    if (!blocks.some(madeFiles)) return message;
    const content = editElements(message, ["content"], (block, at) => withoutFiles(block, blocks[at], dropped));
    return spliceNested(message, ["content"], content.toString());
  });
  if (dropped.size === 0) return { request, dropped: [] };
  const left = spliceJson(body, scan, { set: { messages: edited }, remove: [] });
  const leftScan = scanJson(left);
  if (isJsonFault(leftScan)) throw new Error("a body lost its form when a file was taken out");
  return {
    request: { ...request, body: left, scan: leftScan, json: { ...json, messages: JSON.parse(edited.toString()) } },
    dropped: [...dropped],
  };
}

function madeFiles(block: JsonObject | undefined): boolean {
  return RESULTS.has(block?.type) && arrayOf(objectOf(block?.content)?.content).some(isFile);
}

function isFile(element: unknown): boolean {
  return FILES.has(objectOf(element)?.type);
}

function withoutFiles(raw: Uint8Array, block: JsonObject | undefined, dropped: Set<string>): Uint8Array {
  if (!madeFiles(block)) return raw;
  const made = arrayOf(objectOf(block?.content)?.content);
  const left = editElements(raw, ["content", "content"], (element, at) => {
    if (!isFile(made[at])) return element;
    dropped.add(`messages.${objectOf(made[at])?.type}`);
    return undefined;
  });
  return spliceNested(raw, ["content", "content"], left.toString());
}
