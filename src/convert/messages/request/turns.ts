/**
 * Writes the hub's turns as messages of the messages protocol (docs/translation-rules.md rules 10 to 19, 34, 35 and
 * 38).
 */

import type { ConvertContext, RouteFacts } from "../../exchange.ts";
import type { AssistantTurn, FilePart, HubRequest, SystemTurn, TextPart, ToolResult, UserPart } from "../../hub.ts";
import { restoredReasoning } from "../../rules/envelope.ts";
import type { CallIds } from "../../rules/ids.ts";
import type { Losses } from "../../rules/losses.ts";
import { carriedFile, messagesImageSource } from "../../rules/media.ts";
import { settleResults } from "../../rules/pairing.ts";
import { refuse } from "../../rules/read.ts";
import { isBlank, reminder } from "../../rules/system.ts";
import type { NameBook } from "../../rules/tool-names.ts";
import { argumentsObject } from "../../rules/tool-wrap.ts";
import { cacheControl } from "../shape.ts";

/** A block to be written; its `cache_control` may still be removed. */
export type ContentBlock = Record<string, unknown>;

export interface Message {
  readonly role: "user" | "assistant" | "system";
  readonly content: ContentBlock[];
}

/** What the writer of a conversation needs in addition to the turns. */
interface MessagesScribe {
  readonly hub: HubRequest;
  readonly route: RouteFacts;
  readonly context: ConvertContext;
  readonly names: NameBook;
  readonly ids: CallIds;
  readonly losses: Losses;
}

/** The whole conversation, with alternating roles. */
export function writeTurns(scribe: MessagesScribe): Message[] {
  const messages: Message[] = [];
  // Where system text goes depends on the next message, and a turn of which nothing is left is none.
  let waiting: SystemTurn | undefined;
  for (const turn of settleResults(scribe.hub.turns)) {
    const spoken = turn.role === "assistant" ? assistantBlocks(turn, scribe) : undefined;
    if (spoken?.length === 0) continue;
    if (waiting) writeSystem(messages, waiting, spoken !== undefined && scribe.route.capabilities.midSystem);
    waiting = turn.role === "system" ? turn : undefined;
    if (spoken) push(messages, "assistant", spoken);
    else if (turn.role === "user") writeUser(messages, turn.parts, turn.param, scribe.route);
    else if (turn.role === "tool")
      push(
        messages,
        "user",
        turn.results.map((result) => resultBlock(result, scribe)),
      );
  }
  if (waiting) writeSystem(messages, waiting, scribe.route.capabilities.midSystem);
  return messages;
}

/** Neighbors of one role become one message (rule 16). */
function push(messages: Message[], role: "user" | "assistant", blocks: readonly ContentBlock[]): void {
  if (blocks.length === 0) return;
  const last = messages.at(-1);
  if (last?.role !== role) messages.push({ role, content: [...blocks] });
  else for (const block of blocks) last.content.push(block);
}

/**
 * The protocol takes a system message after a user message, and either last or before an assistant message. Elsewhere
 * the text is a reminder in a user message (rule 10).
 * @param native whether the server takes system messages, and this one is last or before an assistant message.
 */
function writeSystem(messages: Message[], turn: SystemTurn, native: boolean): void {
  if (native && messages.at(-1)?.role === "user") messages.push({ role: "system", content: textBlocks(turn.parts) });
  else push(messages, "user", [marked({ type: "text", text: reminder(turn) }, turn.parts.at(-1)?.cache)]);
}

function writeUser(messages: Message[], parts: readonly UserPart[], param: string, route: RouteFacts): void {
  const blocks = contentBlocks(parts, route);
  if (blocks.length === 0 && messages.at(-1)?.role !== "user") {
    refuse("untranslatable", param, "A user message must have content that is not only white space.");
  }
  push(messages, "user", blocks);
}

/** Text blocks without blank ones, whose cache breakpoints move to the block before (rule 15). */
export function textBlocks(parts: readonly TextPart[]): ContentBlock[] {
  const blocks: ContentBlock[] = [];
  for (const part of parts) pushText(blocks, part);
  return blocks;
}

function pushText(blocks: ContentBlock[], part: TextPart): void {
  const last = blocks.at(-1);
  if (!isBlank(part.text)) blocks.push(marked({ type: "text", text: part.text }, part.cache));
  else if (part.cache !== undefined && last !== undefined) last.cache_control ??= cacheControl(part.cache);
}

function marked(block: ContentBlock, cache: TextPart["cache"]): ContentBlock {
  if (cache !== undefined) block.cache_control = cacheControl(cache);
  return block;
}

function contentBlocks(parts: readonly UserPart[], route: RouteFacts): ContentBlock[] {
  const blocks: ContentBlock[] = [];
  for (const part of parts) {
    if (part.type === "text") pushText(blocks, part);
    else if (part.type === "image") {
      const source = messagesImageSource(part, route.capabilities);
      blocks.push(marked({ type: "image", source }, part.cache));
    } else if (part.type === "file") blocks.push(marked(documentBlock(part, route), part.cache));
    else refuse("untranslatable", part.param, "Audio cannot be carried to this model.");
  }
  return blocks;
}

/** The only type of bytes that a document may have; plain text is not sent as bytes. */
const PDF = "application/pdf";

function documentBlock(part: FilePart, route: RouteFacts): ContentBlock {
  const file = carriedFile(part, route.capabilities);
  const title = part.name;
  if (file.kind === "text") {
    return { type: "document", source: { type: "text", media_type: "text/plain", data: file.text }, title };
  }
  if (file.kind === "url" && !/^https?:\/\//i.test(file.url)) {
    refuse("wrong_type", part.param, "A document must be an http URL or a base64 data URL.");
  }
  if (file.kind === "url") return { type: "document", source: { type: "url", url: file.url }, title };
  if (file.mediaType !== PDF) refuse("untranslatable", part.param, "Files must be PDF or plain text for this model.");
  return { type: "document", source: { type: "base64", media_type: PDF, data: file.data }, title };
}

function resultBlock(result: ToolResult, scribe: MessagesScribe): ContentBlock {
  const block: ContentBlock = {
    type: "tool_result",
    tool_use_id: scribe.ids.ofResult(result.callId),
    content: resultContent(result, scribe),
  };
  if (result.isError) block.is_error = true;
  return marked(block, result.cache);
}

function resultContent(result: ToolResult, scribe: MessagesScribe): unknown {
  const only = result.content[0];
  if (result.plain && only?.type === "text") return only.text;
  const blocks: ContentBlock[] = [];
  for (const part of result.content) {
    if (part.type !== "tool-reference") for (const block of contentBlocks([part], scribe.route)) blocks.push(block);
    else {
      const name = scribe.names.nameOf({ kind: "function", name: part.name });
      blocks.push({ type: "tool_reference", tool_name: name });
    }
  }
  return blocks.length > 0 ? blocks : "";
}

/** The types of reasoning blocks in this protocol. */
const THINKING: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"]);

function assistantBlocks(turn: AssistantTurn, scribe: MessagesScribe): readonly ContentBlock[] {
  const reasoning = restoredReasoning(turn, scribe, THINKING);
  const blocks: ContentBlock[] = [];
  for (const part of turn.parts) {
    if (part.type === "text") pushText(blocks, part);
    else if (part.type === "refusal")
      pushText(blocks, { type: "text", text: part.text }); // The protocol has no refusal block (rule 14).
    else if (part.type === "tool-call") {
      const id = scribe.ids.ofCall(part.id);
      const input = argumentsObject(part.tool, part.input);
      blocks.push({ type: "tool_use", id, name: scribe.names.nameOf(part.tool), input });
    } else for (const block of reasoning?.get(part) ?? []) blocks.push({ ...block });
  }
  return blocks;
}

/**
 * Removes reasoning at the end of the conversation, as after a reply that broke off: the protocol refuses it there, and
 * the model cannot continue from it (rule 38).
 * @returns whether there was any.
 */
export function removeLooseThinking(messages: Message[]): boolean {
  const last = messages.at(-1);
  if (last?.role !== "assistant") return false;
  const kept = last.content.findLastIndex(({ type }) => !THINKING.has(type)) + 1;
  if (kept === last.content.length) return false;
  last.content.splice(kept);
  if (kept === 0) messages.pop();
  return true;
}

/**
 * Whether the last tool loop begins without the thinking that led to its first calls (rule 27). A loop is one turn for
 * the model, which thinks at its beginning and need not think again before later calls. The loop begins after the last
 * user message that is not only results.
 */
export function endsInBareCalls(
  messages: readonly { readonly role: unknown; readonly content: readonly { readonly type?: unknown }[] }[],
): boolean {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  if (!messages[last]?.content.some((block) => block.type === "tool_use")) return false;
  const lastAsked = messages.findLastIndex(
    ({ role, content }, at) => at < last && role !== "assistant" && content.some(({ type }) => type !== "tool_result"),
  );
  const first = messages.slice(lastAsked + 1).find(({ role }) => role === "assistant");
  return !first?.content.some(({ type }) => THINKING.has(type));
}
