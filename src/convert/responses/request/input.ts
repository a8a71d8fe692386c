/** Decodes the items of a responses request to turns (docs/translation-rules.md rules 9 to 21). */

import { isGiven, isObject, type JsonObject } from "../../../values/json-object.ts";
import { shownValue } from "../../../values/words/shown.ts";
import type {
  AssistantPart,
  FilePart,
  HubRequest,
  ImagePart,
  TextPart,
  ToolDefinition,
  ToolKind,
  ToolRef,
  ToolResult,
  UserPart,
} from "../../hub.ts";
import { promptCacheMark } from "../../rules/cache-marks.ts";
import { sourceOfUrl } from "../../rules/media.ts";
import { listBesideText, optionalList, optionalRecord, optionalText, record, refuse, text } from "../../rules/read.ts";
import { isBlank, withoutAttribution } from "../../rules/system.ts";
import { typedInput } from "../../rules/tool-typed.ts";
import { TurnList } from "../../rules/turns.ts";
import { decodeTools } from "../shape.ts";

/** Items of hosted tools. Their work is done and cannot be shown to another vendor (rule 21). */
const HOSTED_ITEMS: ReadonlySet<string> = new Set([
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "computer_call",
  "computer_call_output",
  "mcp_call",
  "mcp_list_tools",
]);

/** Items that only the vendor's own servers can use (rule 21). */
const REFUSED_ITEMS: ReadonlySet<string> = new Set([
  "compaction_trigger",
  "item_reference",
  "program",
  "program_output",
  "agent_message",
  "multi_agent_call",
  "multi_agent_call_output",
  "mcp_approval_request",
  "mcp_approval_response",
]);

export class ResponsesConversation {
  readonly #list = new TurnList();
  readonly #system: TextPart[] = [];
  readonly #tools: ToolDefinition[] = [];
  /** Call ids by item id, because the output of a local shell names the item. */
  readonly #callOfItem = new Map<string, string>();
  /** The effort of the last `configuration_update` that has one (rule 20). */
  effort: unknown = undefined;
  /** The format of the last `configuration_update` that has one. */
  format: unknown = undefined;
  hostedCalls = false;

  /** @param input a string or a list of items. */
  constructor(input: unknown) {
    if (typeof input === "string") {
      this.#list.push({ role: "user", parts: [{ type: "text", text: input }], plain: true, param: "input" });
      return;
    }
    for (const [index, raw] of (optionalList(input, "input") ?? []).entries()) {
      const param = `input[${index}]`;
      this.#read(record(raw, param), param);
    }
  }

  get turns(): HubRequest["turns"] {
    return this.#list.turns;
  }

  get system(): readonly TextPart[] {
    return this.#system;
  }

  /** Tools from `additional_tools` items and tool searches. */
  get tools(): readonly ToolDefinition[] {
    return this.#tools;
  }

  #read(item: JsonObject, param: string): void {
    const type = optionalText(item.type, `${param}.type`) ?? (isGiven(item.role) ? "message" : "");
    if (type === "message") this.#readMessage(item, param);
    else if (type === "reasoning") this.#list.pushAssistant([reasoningPart(item, param)], param);
    else if (type === "tool_search_call" || type === "tool_search_output") this.#readToolSearch(type, item, param);
    else if (type === "additional_tools") this.#addTools(item, param);
    else if (type === "configuration_update") this.#configure(item, param);
    else if (Object.hasOwn(CALLS, type)) this.#readCall(type, item, param);
    else if (Object.hasOwn(OUTPUTS, type)) this.#readOutput(type, item, param);
    else if (HOSTED_ITEMS.has(type)) this.hostedCalls = true;
    else this.#refuse(type, param);
  }

  #refuse(type: string, param: string): never {
    // Our replies never contain a compaction, so each one comes from another vendor.
    if (type === "compaction") refuse("untranslatable", param, "A compaction of another vendor cannot be read.");
    if (REFUSED_ITEMS.has(type)) {
      refuse("unsupported_parameter", `${param}.type`, "Items of this type cannot be carried to this model.");
    }
    return refuse("wrong_type", `${param}.type`, `The type of this item, ${shownValue(type)}, is unknown.`);
  }

  #readMessage(item: JsonObject, param: string): void {
    const role = text(item.role, `${param}.role`);
    const path = `${param}.content`;
    if (role === "user") {
      const plain = typeof item.content === "string";
      this.#list.push({ role: "user", parts: contentParts(item.content, path), plain, param });
    } else if (role === "assistant") this.#list.pushAssistant(assistantParts(item.content, path), param);
    else if (role === "system" || role === "developer") {
      const parts = systemParts(item.content, path);
      if (this.#list.isEmpty) for (const part of parts) this.#system.push(part);
      else this.#list.pushSystem(parts, param);
    } else
      refuse(
        "wrong_type",
        `${param}.role`,
        `The role must be user, assistant, system or developer; it is ${shownValue(role)}.`,
      );
  }

  #readCall(type: string, item: JsonObject, param: string): void {
    const id = text(item.call_id, `${param}.call_id`);
    const call = CALLS[type]?.(item, param);
    if (call === undefined) return;
    if (typeof item.id === "string") this.#callOfItem.set(item.id, id);
    this.#list.pushAssistant([{ type: "tool-call", id, ...call, param: `${param}.call_id` }], param);
  }

  #readOutput(type: string, item: JsonObject, param: string): void {
    const named = optionalText(item.call_id, `${param}.call_id`);
    const id = named ?? text(item.id, `${param}.call_id`);
    const callId = named ?? this.#callOfItem.get(id) ?? id;
    const result = OUTPUTS[type]?.(item, param);
    if (result === undefined) return;
    this.#list.pushResults([{ callId, isError: false, ...result, param: `${param}.call_id` }], param);
  }

  /**
   * A search that the client runs is an ordinary call, and the tools that it found are offered from here on. A hosted
   * search is not.
   */
  #readToolSearch(type: string, item: JsonObject, param: string): void {
    if (item.execution !== "client" || typeof item.call_id !== "string") {
      this.hostedCalls = true;
      return;
    }
    if (type === "tool_search_call") {
      const input = typeof item.arguments === "string" ? item.arguments : JSON.stringify(item.arguments ?? {});
      const tool: ToolRef = { kind: "tool_search", name: "tool_search" };
      this.#list.pushAssistant(
        [{ type: "tool-call", id: item.call_id, tool, input, param: `${param}.call_id` }],
        param,
      );
      return;
    }
    this.#addTools(item, param);
    const found = JSON.stringify(item.tools ?? []);
    const content: ToolResult["content"] = [{ type: "text", text: found }];
    this.#list.pushResults(
      [{ callId: item.call_id, content, plain: true, isError: false, param: `${param}.call_id` }],
      param,
    );
  }

  #addTools(item: JsonObject, param: string): void {
    for (const tool of decodeTools(item.tools, `${param}.tools`)) this.#tools.push(tool);
  }

  #configure(item: JsonObject, param: string): void {
    const effort = optionalRecord(item.reasoning, `${param}.reasoning`)?.effort;
    const format = optionalRecord(item.text, `${param}.text`)?.format;
    if (isGiven(effort)) this.effort = effort;
    if (isGiven(format)) this.format = format;
  }
}

type CallReader = (item: JsonObject, param: string) => { readonly tool: ToolRef; readonly input: string };

function typedCall(kind: ToolKind, member: string): CallReader {
  return (item) => ({ tool: { kind, name: kind }, input: typedInput(kind, item[member]) });
}

const CALLS: Readonly<Record<string, CallReader>> = {
  function_call: (item, param) => ({
    tool: namedTool("function", item, param),
    input: optionalText(item.arguments, `${param}.arguments`) ?? "",
  }),
  custom_tool_call: (item, param) => ({
    tool: namedTool("custom", item, param),
    input: optionalText(item.input, `${param}.input`) ?? "",
  }),
  local_shell_call: typedCall("local_shell", "action"),
  shell_call: typedCall("shell", "action"),
  apply_patch_call: typedCall("apply_patch", "operation"),
};

function namedTool(kind: ToolKind, item: JsonObject, param: string): ToolRef {
  const namespace = optionalText(item.namespace, `${param}.namespace`);
  return { kind, name: text(item.name, `${param}.name`), namespace: namespace === "" ? undefined : namespace };
}

type OutputReader = (
  item: JsonObject,
  param: string,
) => Pick<ToolResult, "content" | "plain"> & Partial<Pick<ToolResult, "isError">>;

const OUTPUTS: Readonly<Record<string, OutputReader>> = {
  function_call_output: (item, param) => outputOf(item.output, `${param}.output`),
  custom_tool_call_output: (item, param) => outputOf(item.output, `${param}.output`),
  local_shell_call_output: (item, param) => outputOf(item.output, `${param}.output`),
  shell_call_output: (item) => plainOutput(typeof item.output === "string" ? item.output : JSON.stringify(item.output)),
  apply_patch_call_output: (item, param) => ({
    ...plainOutput(optionalText(item.output, `${param}.output`) ?? optionalText(item.status, `${param}.status`)),
    isError: item.status === "failed",
  }),
};

function plainOutput(output: string | undefined): Pick<ToolResult, "content" | "plain"> {
  return { content: [{ type: "text", text: output ?? "" }], plain: true };
}

function outputOf(output: unknown, path: string): Pick<ToolResult, "content" | "plain"> {
  if (typeof output === "string" || !isGiven(output))
    return plainOutput(output === null ? undefined : (output as string));
  const content = contentParts(output, path).map((part, index) =>
    part.type === "audio"
      ? refuse("untranslatable", `${path}[${index}]`, "Audio cannot be carried to this model.")
      : part,
  );
  return { content, plain: false };
}

/** A string or a list of input parts. */
function contentParts(content: unknown, path: string): readonly UserPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  const list = listBesideText(content, path) ?? refuse("missing_field", path, `${path} is required.`);
  return list.map((raw, index) => inputPart(record(raw, `${path}[${index}]`), `${path}[${index}]`));
}

function inputPart(part: JsonObject, path: string): UserPart {
  if (part.type === "input_text" || part.type === "text") return textPartOf(part, path);
  if (part.type === "input_image") return imagePart(part, path);
  if (part.type === "input_file") return filePart(part, path);
  if (part.type === "input_audio") return { type: "audio", param: path };
  return refuse(
    "wrong_type",
    `${path}.type`,
    `The part must be input_text, input_image or input_file; it is ${shownValue(part.type)}.`,
  );
}

function textPartOf(part: JsonObject, path: string): TextPart {
  return { type: "text", text: text(part.text, `${path}.text`), cache: breakpoint(part) };
}

/** `prompt_cache_breakpoint` of a part (rule 19). */
function breakpoint({ prompt_cache_breakpoint: mark }: JsonObject): TextPart["cache"] {
  return isObject(mark) ? promptCacheMark(mark) : undefined;
}

function imagePart(part: JsonObject, path: string): ImagePart {
  const id = optionalText(part.file_id, `${path}.file_id`);
  const detail = optionalText(part.detail, `${path}.detail`);
  const cache = breakpoint(part);
  if (id !== undefined) return { type: "image", source: { kind: "id", id }, detail, cache, param: `${path}.file_id` };
  const param = `${path}.image_url`;
  return { type: "image", source: sourceOfUrl(text(part.image_url, param)), detail, cache, param };
}

function filePart(part: JsonObject, path: string): FilePart {
  const name = optionalText(part.filename, `${path}.filename`);
  const id = optionalText(part.file_id, `${path}.file_id`);
  const cache = breakpoint(part);
  if (id !== undefined) return { type: "file", source: { kind: "id", id }, name, cache, param: `${path}.file_id` };
  const url = optionalText(part.file_url, `${path}.file_url`);
  if (url !== undefined) return { type: "file", source: { kind: "url", url }, name, cache, param: `${path}.file_url` };
  const param = `${path}.file_data`;
  return { type: "file", source: sourceOfUrl(text(part.file_data, param)), name, cache, param };
}

function systemParts(content: unknown, path: string): readonly TextPart[] {
  return contentParts(content, path)
    .map((part, index) =>
      part.type === "text"
        ? { ...part, text: withoutAttribution(part.text) }
        : refuse("wrong_type", `${path}[${index}].type`, "Only text parts are allowed here."),
    )
    .filter((part) => !isBlank(part.text));
}

function assistantParts(content: unknown, path: string): readonly AssistantPart[] {
  if (typeof content === "string") return [{ type: "text", text: content, startsMessage: true }];
  return (listBesideText(content, path) ?? []).map((raw, index) => {
    const param = `${path}[${index}]`;
    const part = record(raw, param);
    const startsMessage = index === 0;
    if (part.type === "refusal")
      return { type: "refusal", text: text(part.refusal, `${param}.refusal`), startsMessage };
    if (part.type === "output_text" || part.type === "input_text" || part.type === "text") {
      return { type: "text", text: text(part.text, `${param}.text`), startsMessage };
    }
    return refuse("wrong_type", `${param}.type`, "The part must be output_text or refusal.");
  });
}

/** Summaries, else the raw reasoning, with a blank line between the parts (rule 38). */
function reasoningPart(item: JsonObject, param: string): AssistantPart {
  const summaries = partTexts(item.summary, `${param}.summary`);
  const texts = summaries.length > 0 ? summaries : partTexts(item.content, `${param}.content`);
  const opaque = optionalText(item.encrypted_content, `${param}.encrypted_content`);
  return { type: "reasoning", text: texts.join("\n\n"), opaque };
}

function partTexts(value: unknown, path: string): readonly string[] {
  return (optionalList(value, path) ?? [])
    .map((part, index) => text(record(part, `${path}[${index}]`).text, `${path}[${index}].text`))
    .filter((one) => one !== "");
}
