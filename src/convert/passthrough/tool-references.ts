/**
 * What the messages of a conversation say about hosted tools that are left out: changes of tools that refer to them, and
 * results of a search for tools that name them (docs/translation-rules.md rule 33). A server refuses a request with a
 * reference that leads nowhere, so these are left out as well.
 */
import { arrayOf, isGiven, type JsonObject, objectOf } from "../../values/json-object.ts";
import { hostedType, toolsIn } from "../../values/members/hosted-tools.ts";
import { withElements } from "./elements.ts";

/** Whether a block refers to one of the tools that are left out. */
export type RefersTo = (block: unknown) => boolean;

/** @param types of the hosted tools that are left out. */
export function referringTo(tools: unknown, types: ReadonlySet<string>): RefersTo {
  const left = toolsIn(tools).filter((tool) => types.has(hostedType("messages", tool) ?? ""));
  const valuesOf = (member: string) => new Set(left.map((tool) => tool[member]).filter(isGiven));
  // A tool and an MCP server may have the same name.
  const [names, servers] = [valuesOf("name"), valuesOf("mcp_server_name")];
  return (block) => {
    const { type, tool, tool_name: found } = objectOf(block) ?? {};
    if (type === "tool_reference") return names.has(found);
    if (type !== "tool_addition" && type !== "tool_removal") return false;
    const { name, server_name: server } = objectOf(tool) ?? {};
    return isGiven(server) ? servers.has(server) : names.has(name);
  };
}

/**
 * The place of a compaction whose changes of tools refer to these; undefined: none. Clients must send such a block as
 * its server has signed it, so nothing can be left out of it.
 */
export function compactionWith(messages: unknown, refersTo: RefersTo): string | undefined {
  for (const [at, message] of arrayOf(messages).entries()) {
    const blocks = arrayOf(objectOf(message)?.content);
    const found = blocks.findIndex((block) => arrayOf(objectOf(block)?.tool_changes).some(refersTo));
    if (found >= 0) return `messages[${at}].content[${found}].tool_changes`;
  }
  return undefined;
}

/** A message without what refers to these; undefined if nothing is left in it, the message itself if nothing does. */
export function messageLeft(message: unknown, refersTo: RefersTo): unknown {
  const { content, ...rest } = objectOf(message) ?? {};
  const blocks = arrayOf(content);
  const left = blocks.map((block) => blockLeft(block, refersTo));
  if (left.every((block, index) => block === blocks[index])) return message;
  const kept = left.filter((block) => block !== undefined);
  if (kept.length > 0) return { ...rest, content: kept };
  // Without content it may still set the effort.
  return isGiven(objectOf(rest.output_config)?.effort) ? rest : undefined;
}

/** A result stays, even if nothing is left in it: its call needs it. */
function blockLeft(block: unknown, refersTo: RefersTo): unknown {
  if (refersTo(block)) return undefined;
  const { path, parts } = resultOf(block);
  if (!parts.some(refersTo)) return block;
  const kept = parts.filter((part) => !refersTo(part));
  const { content, ...rest } = block as JsonObject;
  return { ...rest, content: path === OF_CLIENT ? kept : { ...objectOf(content), tool_references: kept } };
}

/** Where the result of a search for tools names them: that of the client, and that of its server. */
const OF_CLIENT = ["content"] as const;
const OF_SERVER = ["content", "tool_references"] as const;

function resultOf(block: unknown): { readonly path: readonly string[]; readonly parts: readonly unknown[] } {
  const content = objectOf(block)?.content;
  const found = objectOf(content)?.tool_references;
  return Array.isArray(found) ? { path: OF_SERVER, parts: found } : { path: OF_CLIENT, parts: arrayOf(content) };
}

/** The bytes of a message without what refers to these. @param left what `messageLeft` has left of it. */
export function writtenMessage(bytes: Uint8Array, before: unknown, left: unknown, refersTo: RefersTo): Uint8Array {
  if (objectOf(left)?.content === undefined) return Buffer.from(JSON.stringify(left));
  const blocks = arrayOf(objectOf(before)?.content);
  return withElements(bytes, ["content"], (block, index) => {
    if (refersTo(blocks[index])) return undefined;
    const { path, parts } = resultOf(blocks[index]);
    if (!parts.some(refersTo)) return block;
    return withElements(block, path, (part, at) => (refersTo(parts[at]) ? undefined : part));
  });
}
