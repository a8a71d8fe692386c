/** Decodes chat messages to turns (docs/translation-rules.md rules 9 to 21). */

import { isGiven, type JsonObject } from "../../../values/json-object.ts";
import { SEALED_PREFIX } from "../../../values/sealed.ts";
import { shownValue } from "../../../values/words/shown.ts";
import type { AssistantPart, FilePart, ImagePart, TextPart, ToolResult, Turn, UserPart, UserTurn } from "../../hub.ts";
import { cacheMark, promptCacheMark } from "../../rules/cache-marks.ts";
import { sourceOfUrl } from "../../rules/media.ts";
import { provePairs } from "../../rules/pairing.ts";
import { listBesideText, optionalList, optionalRecord, optionalText, record, refuse, text } from "../../rules/read.ts";
import { isBlank, withoutAttribution } from "../../rules/system.ts";
import { TurnList } from "../../rules/turns.ts";

/** The content of a body's messages. */
interface ChatConversation {
  readonly system: readonly TextPart[];
  readonly turns: readonly Turn[];
}

/** Messages as turns; checks that calls and results pair up (rule 12). */
export function decodeMessages(value: unknown): ChatConversation {
  const messages = optionalList(value, "messages") ?? [];
  const system: TextPart[] = [];
  const list = new TurnList();
  const functions = new FunctionCalls();
  /** Images in assistant messages. Other protocols do not allow them there, so they move to a user turn (rule 18). */
  let shown: ImagePart[] = [];
  for (const [index, raw] of messages.entries()) {
    const param = `messages[${index}]`;
    const message = record(raw, param);
    const role = text(message.role, `${param}.role`);
    if (role === "system" || role === "developer") {
      const parts = systemParts(message.content, `${param}.content`);
      if (list.isEmpty) for (const part of parts) system.push(part);
      else list.pushSystem(parts, param);
    } else if (role === "user") {
      list.push(showing(shown, userTurn(message, param)));
      shown = [];
    } else if (role === "assistant") {
      list.push({ role: "assistant", parts: assistantParts(message, param, functions, shown), param });
    } else if (role === "tool") list.pushResults([toolResult(message, param)], param);
    else if (role === "function") list.pushResults([functionResult(message, param, functions)], param);
    else {
      refuse(
        "wrong_type",
        `${param}.role`,
        `The role must be developer, system, user, assistant, tool or function; it is ${shownValue(role)}.`,
      );
    }
  }
  provePairs(list.turns, true);
  const [first] = shown;
  if (first) list.push({ role: "user", parts: shown, plain: false, param: first.param });
  return { system, turns: list.turns };
}

function showing(images: readonly ImagePart[], turn: UserTurn): UserTurn {
  return images.length === 0 ? turn : { ...turn, parts: [...images, ...turn.parts], plain: false };
}

function systemParts(content: unknown, param: string): readonly TextPart[] {
  return textParts(content, param)
    .map((part) => ({ ...part, text: withoutAttribution(part.text) }))
    .filter((part) => !isBlank(part.text));
}

/** A string or a list of text parts. */
function textParts(content: unknown, param: string): readonly TextPart[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return (listBesideText(content, param) ?? refuse("missing_field", param, `${param} is required.`)).map(
    (raw, index) => {
      const path = `${param}[${index}]`;
      const part = record(raw, path);
      if (part.type !== "text") refuse("wrong_type", `${path}.type`, "Only text parts are allowed here.");
      return textOf(part, path);
    },
  );
}

function textOf(part: JsonObject, path: string): TextPart {
  return { type: "text", text: text(part.text, `${path}.text`), cache: breakpoint(part, path) };
}

/**
 * `prompt_cache_breakpoint` of a part, or `cache_control` as in messages, which routers also take on chat (rule 19).
 */
function breakpoint(part: JsonObject, path: string): TextPart["cache"] {
  const mark = optionalRecord(part.prompt_cache_breakpoint, `${path}.prompt_cache_breakpoint`);
  return mark === undefined ? cacheMark(part.cache_control, `${path}.cache_control`) : promptCacheMark(mark);
}

function userTurn(message: JsonObject, param: string): UserTurn {
  const { content } = message;
  const path = `${param}.content`;
  if (typeof content === "string") {
    return { role: "user", parts: [{ type: "text", text: content }], plain: true, param };
  }
  const list = listBesideText(content, path) ?? refuse("missing_field", path, `${path} is required.`);
  return { role: "user", parts: list.map((raw, index) => userPart(raw, `${path}[${index}]`)), plain: false, param };
}

function userPart(raw: unknown, path: string): UserPart {
  const part = record(raw, path);
  if (part.type === "text") return textOf(part, path);
  if (part.type === "image_url") return imagePart(part, path);
  if (part.type === "file") return filePart(part, path);
  if (part.type === "input_audio") return { type: "audio", param: path };
  return refuse(
    "wrong_type",
    `${path}.type`,
    `The part must be text, image_url, input_audio or file; it is ${shownValue(part.type)}.`,
  );
}

function imagePart(part: JsonObject, path: string): ImagePart {
  const param = `${path}.image_url`;
  const image = typeof part.image_url === "string" ? { url: part.image_url } : record(part.image_url, param);
  return {
    type: "image",
    source: sourceOfUrl(text(image.url, `${param}.url`)),
    detail: optionalText((image as JsonObject).detail, `${param}.detail`),
    cache: breakpoint(part, path),
    param,
  };
}

function filePart(part: JsonObject, path: string): FilePart {
  const param = `${path}.file`;
  const file = record(part.file, param);
  const name = optionalText(file.filename, `${param}.filename`);
  const id = optionalText(file.file_id, `${param}.file_id`);
  const cache = breakpoint(part, path);
  if (id !== undefined) return { type: "file", source: { kind: "id", id }, name, cache, param };
  return { type: "file", source: sourceOfUrl(text(file.file_data, `${param}.file_data`)), name, cache, param };
}

/** Ids for calls in the deprecated form, which has none: the number of the call in the request (rule 37). */
class FunctionCalls {
  #made = 0;
  #answered = 0;
  next(): string {
    return `call_fn_${this.#made++}`;
  }
  answer(): string {
    return `call_fn_${this.#answered++}`;
  }
}

/** @param images receives the images of the message, in its content or in OpenRouter's `images`. */
function assistantParts(
  message: JsonObject,
  param: string,
  functions: FunctionCalls,
  images: ImagePart[],
): readonly AssistantPart[] {
  if (isGiven(message.audio)) {
    refuse("unsupported_parameter", `${param}.audio`, "Audio cannot be carried to this model.");
  }
  const parts: AssistantPart[] = [...reasoningParts(message), ...contentParts(message, param, images)];
  for (const [index, raw] of (optionalList(message.images, `${param}.images`) ?? []).entries()) {
    images.push(imagePart(record(raw, `${param}.images[${index}]`), `${param}.images[${index}]`));
  }
  for (const [index, raw] of (optionalList(message.tool_calls, `${param}.tool_calls`) ?? []).entries()) {
    parts.push(toolCall(raw, `${param}.tool_calls[${index}]`));
  }
  const call = optionalRecord(message.function_call, `${param}.function_call`);
  if (call) {
    const path = `${param}.function_call`;
    parts.push({
      type: "tool-call",
      id: functions.next(),
      tool: { kind: "function", name: text(call.name, `${path}.name`) },
      input: optionalText(call.arguments, `${path}.arguments`) ?? "",
      param: path,
    });
  }
  return parts;
}

/** `reasoning_content`, or `reasoning` on some servers: readable text, or one of our envelopes (rule 38). */
function reasoningParts(message: JsonObject): readonly AssistantPart[] {
  const given = [message.reasoning_content, message.reasoning].find((one) => typeof one === "string" && one !== "");
  if (typeof given !== "string") return [];
  const sealed = given.startsWith(SEALED_PREFIX);
  return [{ type: "reasoning", text: sealed ? "" : given, opaque: sealed ? given : undefined }];
}

function contentParts(message: JsonObject, param: string, images: ImagePart[]): readonly AssistantPart[] {
  const path = `${param}.content`;
  const parts: AssistantPart[] = [];
  if (typeof message.content === "string") parts.push({ type: "text", text: message.content, startsMessage: true });
  else {
    for (const [index, raw] of (listBesideText(message.content, path) ?? []).entries()) {
      const place = `${path}[${index}]`;
      const part = record(raw, place);
      if (part.type === "image_url") images.push(imagePart(part, place));
      else parts.push(assistantPart(part, place, parts.length === 0));
    }
  }
  const refusalText = optionalText(message.refusal, `${param}.refusal`);
  if (refusalText) parts.push({ type: "refusal", text: refusalText, startsMessage: parts.length === 0 });
  return parts;
}

function assistantPart(part: JsonObject, path: string, startsMessage: boolean): AssistantPart {
  if (part.type === "text") return { ...textOf(part, path), startsMessage };
  if (part.type === "refusal") return { type: "refusal", text: text(part.refusal, `${path}.refusal`), startsMessage };
  return refuse("wrong_type", `${path}.type`, "The part must be text, refusal or image_url.");
}

function toolCall(raw: unknown, path: string): AssistantPart {
  const call = record(raw, path);
  const id = text(call.id, `${path}.id`);
  const param = `${path}.id`;
  if (call.type === "custom") {
    const custom = record(call.custom, `${path}.custom`);
    const name = text(custom.name, `${path}.custom.name`);
    const input = optionalText(custom.input, `${path}.custom.input`) ?? "";
    return { type: "tool-call", id, tool: { kind: "custom", name }, input, param };
  }
  const called = record(call.function, `${path}.function`);
  const name = text(called.name, `${path}.function.name`);
  const input = optionalText(called.arguments, `${path}.function.arguments`) ?? "";
  return { type: "tool-call", id, tool: { kind: "function", name }, input, param };
}

function toolResult(message: JsonObject, param: string): ToolResult {
  const path = `${param}.content`;
  const plain = typeof message.content === "string";
  return {
    callId: text(message.tool_call_id, `${param}.tool_call_id`),
    content: plain ? textParts(message.content, path) : resultParts(message.content, path),
    plain,
    isError: false,
    param: `${param}.tool_call_id`,
  };
}

/** Text parts, and images, which some clients send although the protocol has only text. */
function resultParts(content: unknown, path: string): ToolResult["content"] {
  return (listBesideText(content, path) ?? []).map((raw, index) => {
    const part = userPart(raw, `${path}[${index}]`);
    return part.type === "audio"
      ? refuse("wrong_type", `${path}[${index}].type`, "Only text parts are allowed here.")
      : part;
  });
}

function functionResult(message: JsonObject, param: string, functions: FunctionCalls): ToolResult {
  return {
    callId: functions.answer(),
    content: [{ type: "text", text: optionalText(message.content, `${param}.content`) ?? "" }],
    plain: true,
    isError: false,
    param,
  };
}
