/**
 * Files that a model's code has made, in a conversation that comes back: a result of code execution names each by an id, which
 * belongs to the holder of the upstream's credential, and so to all tenants together (ARCHITECTURE.md promise 14). Clients send back what they were
 * given, so a result loses the files, which are named, and its text goes on; nothing that is sent could tell whose they are.
 */
import { arrayOf, type JsonObject, objectOf } from "../../values/json-object.ts";
import { findMember, holdsText, type JsonMember, type JsonScan, spliceJson } from "../../wire/json.ts";
import type { ClientRequest } from "../exchange.ts";
import { editElements, withElements } from "./elements.ts";
import type { Left } from "./hosted-tools.ts";

/** Blocks that hold a result of code, and in it a list of what it made. */
const RESULTS: ReadonlySet<unknown> = new Set(["code_execution_tool_result", "bash_code_execution_tool_result"]);
/** What stands in that list for a file. */
const FILES: ReadonlySet<unknown> = new Set(["code_execution_output", "bash_code_execution_output"]);
/** How the types of FILES end, for a look at the bytes. */
const WORD = '_output"';

/** So many are left out of one request: each takes 15 us. One that names more is refused, as any id of a file is elsewhere. */
const FILES_MAX = 256;

/** The request without files that its results of code name; every other byte of their messages stays. */
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
  /** The blocks, as they came, of each message that loses a file. */
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

/** What a result of code names of what it made; of every other block nothing. */
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

/** A message's bytes without the files that these blocks of it name. */
function withContent(message: Uint8Array, blocks: readonly unknown[]): Uint8Array {
  return withElements(message, ["content"], (block, index) => {
    if (filesIn(blocks[index]).length === 0) return block;
    const made = arrayOf(objectOf(objectOf(blocks[index])?.content)?.content);
    return withElements(block, ["content", "content"], (one, at) => (isFile(made[at]) ? undefined : one));
  });
}

/** The scan of a body in which the value of one member has become longer, or shorter; it is not gone through again. */
function withLonger(scan: JsonScan, { nameStart }: JsonMember, by: number): JsonScan {
  const members = scan.members.map((one) => ({
    ...one,
    nameStart: one.nameStart > nameStart ? one.nameStart + by : one.nameStart,
    valueStart: one.nameStart > nameStart ? one.valueStart + by : one.valueStart,
    valueEnd: one.nameStart >= nameStart ? one.valueEnd + by : one.valueEnd,
  }));
  return { ...scan, members, end: scan.end + by };
}
