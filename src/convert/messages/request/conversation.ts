/** Decodes messages of the messages protocol to turns (docs/translation-rules.md rules 10 to 21). */

import { isGiven, isObject, type JsonObject } from "../../../values/json-object.ts";
import { shownValue } from "../../../values/words/shown.ts";
import type { AssistantPart, FilePart, HubRequest, ImagePart, TextPart, ToolResult, UserPart } from "../../hub.ts";
import { base64Source } from "../../rules/media.ts";
import { provePairs } from "../../rules/pairing.ts";
import {
  listBesideText,
  optionalFlag,
  optionalList,
  optionalRecord,
  optionalText,
  optionalWord,
  record,
  refuse,
  text,
} from "../../rules/read.ts";
import { TurnList } from "../../rules/turns.ts";
import { isToolChange, type OfferedTools } from "./tool-changes.ts";

/** A text part with no other member. */
export function plainText(value: string): TextPart {
  return { type: "text", text: value };
}

/** The text block at a path. */
export function textBlock(block: JsonObject, path: string): TextPart {
  return { type: "text", text: text(block.text, `${path}.text`), cache: breakpoint(block) };
}

function breakpoint(block: JsonObject): TextPart["cache"] {
  if (!isObject(block.cache_control)) return undefined;
  return { ttl: block.cache_control.ttl === "1h" ? "long" : "short" };
}

/** Blocks of server tools: a use and its result, dropped as a pair (rule 21). */
function isServerTool(type: unknown): boolean {
  return (
    type === "server_tool_use" || type === "mcp_tool_use" || (typeof type === "string" && type.endsWith("_tool_result"))
  );
}

/** The turns of a body, and the values that its messages set. */
export class MessagesConversation {
  readonly #list = new TurnList();
  readonly #tools: OfferedTools;
  /** The index of the last message of the user. */
  readonly #lastOfUser: number;
  /** The effort of the last system message that has one (rule 10). */
  effort: unknown = undefined;
  /** System text before the first turn; it belongs to the leading system text. */
  readonly leading: TextPart[] = [];
  serverTools = false;

  /** @param tools gets the changes of tools. */
  constructor(json: JsonObject, tools: OfferedTools) {
    this.#tools = tools;
    const messages = optionalList(json.messages, "messages") ?? [];
    this.#lastOfUser = messages.findLastIndex((message) => isObject(message) && message.role === "user");
    for (const [index, raw] of messages.entries()) this.#read(record(raw, `messages.${index}`), index);
    provePairs(this.#list.turns, true);
  }

  get turns(): HubRequest["turns"] {
    return this.#list.turns;
  }

  #read(message: JsonObject, index: number): void {
    const param = `messages.${index}`;
    const role = text(message.role, `${param}.role`);
    const path = `${param}.content`;
    const given =
      typeof message.content === "string"
        ? [{ type: "text", text: message.content }]
        : listBesideText(message.content, path);
    const isOptional = role === "system" && isGiven(message.output_config);
    const blocks = given ?? (isOptional ? [] : refuse("missing_field", path, `${path} is required.`));
    if (role === "user") this.#readUser(blocks, typeof message.content === "string", param);
    else if (role === "assistant") this.#readAssistant(blocks, param);
    else if (role === "system") this.#readSystem(message, blocks, index);
    else
      refuse("wrong_type", `${param}.role`, `The role must be user, assistant or system; it is ${shownValue(role)}.`);
  }

  #readUser(blocks: readonly unknown[], plain: boolean, param: string): void {
    const results: ToolResult[] = [];
    const parts: UserPart[] = [];
    let isServers = false;
    for (const [index, raw] of blocks.entries()) {
      const path = `${param}.content.${index}`;
      const block = record(raw, path);
      if (block.type === "tool_result") results.push(toolResult(block, path));
      else if (isServerTool(block.type)) isServers = true;
      else for (const part of contentBlock(block, path)) parts.push(part);
    }
    this.serverTools ||= isServers;
    this.#list.pushResults(results, param); // Results first, wherever they are in the message (rule 13).
    // A message with nothing but work of hosted tools is left out with it (rule 21).
    if (parts.length > 0 || (results.length === 0 && !isServers))
      this.#list.push({ role: "user", parts, plain, param });
  }

  #readAssistant(blocks: readonly unknown[], param: string): void {
    const parts: AssistantPart[] = [];
    for (const [index, raw] of blocks.entries()) {
      const path = `${param}.content.${index}`;
      const block = record(raw, path);
      if (isServerTool(block.type)) this.serverTools = true;
      else if (block.type !== "fallback") parts.push(assistantBlock(block, path, index === 0));
    }
    // In this protocol, consecutive messages of one role are one turn (rule 16).
    this.#list.pushAssistant(parts, param);
  }

  #readSystem(message: JsonObject, blocks: readonly unknown[], at: number): void {
    const param = `messages.${at}`;
    const config = optionalRecord(message.output_config, `${param}.output_config`);
    if (isGiven(config?.effort)) this.effort = config?.effort;
    const parts: TextPart[] = [];
    for (const [index, raw] of blocks.entries()) {
      const path = `${param}.content.${index}`;
      const block = record(raw, path);
      if (block.type === "text") parts.push(textBlock(block, path));
      else if (isToolChange(block)) this.#tools.change(block, path);
      else refuse("untranslatable", path, `A ${nameOf(block)} block cannot be carried to this model.`);
    }
    const clearAt = optionalWord(message.clear_at, `${param}.clear_at`, ["next_user_message", "never"]);
    if (clearAt === "next_user_message" && at < this.#lastOfUser) return;
    if (!this.#list.isEmpty) this.#list.pushSystem(parts, param);
    else for (const part of parts) this.leading.push(part);
  }
}

function assistantBlock(block: JsonObject, path: string, startsMessage: boolean): AssistantPart {
  if (block.type === "text") return { ...textBlock(block, path), startsMessage };
  if (block.type === "thinking") {
    const opaque = optionalText(block.signature, `${path}.signature`);
    return { type: "reasoning", text: optionalText(block.thinking, `${path}.thinking`) ?? "", opaque };
  }
  if (block.type === "redacted_thinking") {
    return { type: "reasoning", text: "", opaque: optionalText(block.data, `${path}.data`) };
  }
  if (block.type === "tool_use") {
    const input = optionalRecord(block.input, `${path}.input`) ?? {};
    return {
      type: "tool-call",
      id: text(block.id, `${path}.id`),
      tool: { kind: "function", name: text(block.name, `${path}.name`) },
      input: JSON.stringify(input),
      param: path,
    };
  }
  return refuse("untranslatable", path, `A ${nameOf(block)} block cannot be carried to this model.`);
}

function nameOf(block: JsonObject): string {
  return typeof block.type === "string" ? block.type : "nameless";
}

/** The blocks that are allowed in user messages and tool results: text, images and files. */
function contentBlock(block: JsonObject, path: string): readonly (TextPart | ImagePart | FilePart)[] {
  if (block.type === "text") return [textBlock(block, path)];
  if (block.type === "image") return [imageBlock(block, path)];
  if (block.type === "document") return documentBlock(block, path);
  if (block.type === "search_result") return searchResult(block, path);
  return refuse("untranslatable", path, `A ${nameOf(block)} block cannot be carried to this model.`);
}

function imageBlock(block: JsonObject, path: string): ImagePart {
  const source = record(block.source, `${path}.source`);
  return { type: "image", source: mediaSource(source, path), cache: breakpoint(block), param: path };
}

function mediaSource(source: JsonObject, path: string): ImagePart["source"] {
  if (source.type === "base64") {
    const type = text(source.media_type, `${path}.source.media_type`);
    return base64Source(type, text(source.data, `${path}.source.data`));
  }
  if (source.type === "url") return { kind: "url", url: text(source.url, `${path}.source.url`) };
  if (source.type === "file") return { kind: "id", id: text(source.file_id, `${path}.source.file_id`) };
  return refuse("wrong_type", `${path}.source.type`, "The source must be base64, url or file.");
}

function documentBlock(block: JsonObject, path: string): readonly (TextPart | ImagePart | FilePart)[] {
  const source = record(block.source, `${path}.source`);
  const name = optionalText(block.title, `${path}.title`);
  const context = optionalText(block.context, `${path}.context`);
  // The client's context for a document becomes a text before it, because no other protocol has a member for it (rule
  // 18).
  const before = descriptions([context]);
  const cache = breakpoint(block);
  if (source.type === "text") {
    const plain = text(source.data, `${path}.source.data`);
    return [...before, { type: "file", source: { kind: "text", text: plain }, name, cache, param: path }];
  }
  if (source.type === "content") {
    return [...descriptions([name, context]), ...nestedContent(source.content, `${path}.source.content`)];
  }
  return [...before, { type: "file", source: mediaSource(source, path), name, cache, param: path }];
}

/** Descriptions of a document, as text parts. */
function descriptions(texts: readonly (string | undefined)[]): readonly TextPart[] {
  return texts.flatMap((one) => (one === undefined || one === "" ? [] : [plainText(one)]));
}

/** A search result as text: title and URL, then its content (rule 18). */
function searchResult(block: JsonObject, path: string): readonly (TextPart | ImagePart | FilePart)[] {
  const head = [optionalText(block.title, `${path}.title`), optionalText(block.source, `${path}.source`)]
    .filter((line) => line !== undefined && line !== "")
    .join("\n");
  const found = nestedContent(block.content, `${path}.content`);
  return head === "" ? found : [plainText(head), ...found];
}

function nestedContent(content: unknown, path: string): readonly (TextPart | ImagePart | FilePart)[] {
  if (typeof content === "string") return [plainText(content)];
  return (listBesideText(content, path) ?? []).map((raw, index) => {
    const block = record(raw, `${path}.${index}`);
    if (block.type === "text") return textBlock(block, `${path}.${index}`);
    if (block.type === "image") return imageBlock(block, `${path}.${index}`);
    return refuse("untranslatable", `${path}.${index}`, `A ${nameOf(block)} block cannot be carried to this model.`);
  });
}

function toolResult(block: JsonObject, path: string): ToolResult {
  const { content } = block;
  const plain = typeof content === "string" || !isGiven(content);
  return {
    callId: text(block.tool_use_id, `${path}.tool_use_id`),
    content: plain
      ? [plainText(typeof content === "string" ? content : "")]
      : (listBesideText(content, `${path}.content`) ?? []).flatMap((raw, index) =>
          resultBlock(record(raw, `${path}.content.${index}`), `${path}.content.${index}`),
        ),
    plain,
    isError: optionalFlag(block.is_error, `${path}.is_error`) ?? false,
    cache: breakpoint(block),
    param: path,
  };
}

function resultBlock(block: JsonObject, path: string): ToolResult["content"] {
  if (block.type !== "tool_reference") return contentBlock(block, path);
  return [{ type: "tool-reference", name: text(block.tool_name, `${path}.tool_name`) }];
}
