/**
 * Files that a model's code has made, in a conversation that a client sends back. Results of code execution name each
 * file by an id. The file belongs to the holder of the upstream's credential, and so to all tenants together
 * (ARCHITECTURE.md promise 14). Nothing in the request tells whose file it is. Clients send back what they received, so
 * the files are removed from the results and named as dropped; the text of the results stays.
 */
import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import { findMember, holdsText, type JsonMember, type JsonScan, spliceJson } from "../../wire/json.ts";
import type { ClientRequest } from "../exchange.ts";
import { editElements, withElements } from "./elements.ts";
import type { Left } from "./hosted-tools.ts";

/** Blocks with a result of code execution, which contains a list of what the code made. */
const RESULTS: ReadonlySet<unknown> = new Set(["code_execution_tool_result", "bash_code_execution_tool_result"]);
/** The elements of that list that are files. */
const FILES: ReadonlySet<unknown> = new Set(["code_execution_output", "bash_code_execution_output"]);
/** The common end of the types in FILES, to search the bytes for. */
const WORD = '_output"';

/**
 * The most files that are removed from one request; each takes 15 us. A request with more is refused, as for any other
 * file id.
 */
const FILES_MAX = 256;

/** The request without the files in its code execution results; every other byte of the messages stays. */
export function withoutMadeFiles(request: ClientRequest): Left {
  const { body, scan, json } = request;
  const found = conversationWithout(request);
  const member = found && findMember(scan, "messages");
  if (!found || !member) return { request, dropped: [] };
  const messages = editElements(body, ["messages"], (message, index) => {
    const content = found.blocks.get(index);
    return content ? withContent(message, content) : message;
  });
  const left = spliceJson(body, scan, { set: { messages } });
  return {
    request: {
      ...request,
      body: left,
      scan: withLonger(scan, member, left.length - body.length),
      json: { ...json, messages: found.messages },
    },
    dropped: [...found.dropped],
  };
}

interface Conversation {
  readonly messages: readonly unknown[];
  /** The original blocks of each message that loses a file. */
  readonly blocks: ReadonlyMap<number, readonly unknown[]>;
  readonly dropped: ReadonlySet<string>;
}

function conversationWithout({ protocol, body, json }: ClientRequest): Conversation | undefined {
  if (protocol !== "messages" || !holdsText(body, WORD)) return undefined;
  const blocks = new Map<number, readonly unknown[]>();
  const dropped = new Set<string>();
  let count = 0;
  const messages = arrayOf(json.messages).map((message, index) => {
    const content = arrayOf(objectOf(message)?.content);
    const files = content.flatMap(filesIn);
    if (files.length === 0) return message;
    count += files.length;
    blocks.set(index, content);
    for (const { type } of files) dropped.add(`messages.${type}`);
    return { ...objectOf(message), content: content.map(withoutFiles) };
  });
  return count === 0 || count > FILES_MAX ? undefined : { messages, blocks, dropped };
}

/** The files in a code execution result; none in any other block. */
function filesIn(block: unknown): readonly JsonObject[] {
  const { type, content } = objectOf(block) ?? {};
  return RESULTS.has(type) ? arrayOf(objectOf(content)?.content).map(objectOf).filter(isFile) : [];
}

function isFile(element: unknown): element is JsonObject {
  const { type, file_id: id } = objectOf(element) ?? {};
  return FILES.has(type) && id !== undefined && id !== null;
}

function withoutFiles(block: unknown): unknown {
  if (filesIn(block).length === 0) return block;
  const result = objectOf(objectOf(block)?.content);
  const content = arrayOf(result?.content).filter((element) => !isFile(element));
  return { ...objectOf(block), content: { ...result, content } };
}

/** A message's bytes without the files in these blocks. */
function withContent(message: Uint8Array, blocks: readonly unknown[]): Uint8Array {
  return withElements(message, ["content"], (block, index) => {
    if (filesIn(blocks[index]).length === 0) return block;
    const made = arrayOf(objectOf(objectOf(blocks[index])?.content)?.content);
    return withElements(block, ["content", "content"], (one, at) => (isFile(made[at]) ? undefined : one));
  });
}

/** Adjusts a scan after the length of one member's value changed, without scanning again. */
function withLonger(scan: JsonScan, { nameStart }: JsonMember, by: number): JsonScan {
  const members = scan.members.map((one) => ({
    ...one,
    nameStart: one.nameStart > nameStart ? one.nameStart + by : one.nameStart,
    valueStart: one.nameStart > nameStart ? one.valueStart + by : one.valueStart,
    valueEnd: one.nameStart >= nameStart ? one.valueEnd + by : one.valueEnd,
  }));
  return { ...scan, members, end: scan.end + by };
}
