/**
 * Writes the hub's turns as items of the responses protocol (docs/translation-rules.md rules 10, 13, 14, 18 and 38).
 */

import type { JsonObject } from "../../../values/json-object.ts";
import type { ConvertContext, RouteFacts } from "../../exchange.ts";
import type {
  AssistantTurn,
  FilePart,
  HubRequest,
  ImagePart,
  TextPart,
  ToolCallPart,
  ToolResult,
  UserPart,
} from "../../hub.ts";
import { writtenPromptCacheMark } from "../../rules/cache-marks.ts";
import { ignoreReasoning, restoredReasoning } from "../../rules/envelope.ts";
import type { CallIds } from "../../rules/ids.ts";
import type { Losses } from "../../rules/losses.ts";
import { carriedFile, carriedImage, fileName, titledText, urlOfSource } from "../../rules/media.ts";
import { refuse } from "../../rules/read.ts";
import { errorText, joinTexts } from "../../rules/system.ts";
import type { NameBook } from "../../rules/tool-names.ts";
import { argumentsText } from "../../rules/tool-wrap.ts";

/** What the writer of a conversation needs in addition to the turns. */
interface ResponsesScribe {
  readonly hub: HubRequest;
  readonly route: RouteFacts;
  readonly context: ConvertContext;
  readonly names: NameBook;
  readonly ids: CallIds;
  readonly losses: Losses;
}

/** The whole conversation as items, except the leading system text. */
export function writeItems(scribe: ResponsesScribe): readonly JsonObject[] {
  const items: JsonObject[] = [];
  const customCalls = new Set<string>();
  for (const turn of scribe.hub.turns) {
    if (turn.role === "user") {
      items.push({ type: "message", role: "user", content: userContent(turn.parts, turn.plain, scribe) });
    } else if (turn.role === "system") {
      items.push({ type: "message", role: "developer", content: joinTexts(turn.parts) });
    } else if (turn.role === "assistant") {
      for (const item of assistantItems(turn, scribe)) items.push(item);
      noteCustomCalls(turn, scribe, customCalls);
    } else {
      for (const result of turn.results) items.push(outputItem(result, customCalls.has(result.callId), scribe));
    }
  }
  return items;
}

function userContent(parts: readonly UserPart[], plain: boolean, scribe: ResponsesScribe): unknown {
  const only = parts[0];
  if (plain && parts.length === 1 && only?.type === "text") return only.text;
  return parts.map((part) => markedPart(part, scribe));
}

/**
 * A part with its breakpoint. Chat has the same breakpoints; those of messages are hints that this protocol has no
 * member for (rule 3).
 */
function markedPart(part: UserPart, scribe: ResponsesScribe): JsonObject {
  const written = inputPart(part, scribe.route);
  if (part.type === "audio" || part.cache === undefined || scribe.hub.client === "messages") return written;
  return { ...written, prompt_cache_breakpoint: writtenPromptCacheMark(part.cache) };
}

function inputPart(part: UserPart, route: RouteFacts): JsonObject {
  if (part.type === "text") return inputText(part);
  if (part.type === "image") return inputImage(part, route);
  if (part.type === "file") return inputFile(part, route);
  return refuse("untranslatable", part.param, "Audio cannot be carried to this model.");
}

function inputText(part: TextPart): JsonObject {
  return { type: "input_text", text: part.text };
}

function inputImage(part: ImagePart, route: RouteFacts): JsonObject {
  const url = urlOfSource(carriedImage(part, route.capabilities));
  return { type: "input_image", image_url: url, detail: part.detail ?? "auto" };
}

function inputFile(part: FilePart, route: RouteFacts): JsonObject {
  const file = carriedFile(part, route.capabilities);
  if (file.kind === "text") return { type: "input_text", text: titledText(part.name, file.text) };
  if (file.kind === "url") return { type: "input_file", filename: part.name, file_url: file.url };
  return { type: "input_file", filename: fileName(part, file.mediaType), file_data: urlOfSource(file) };
}

function isNativeCustom(call: ToolCallPart, scribe: ResponsesScribe): boolean {
  return call.tool.kind === "custom" && scribe.route.capabilities.customTools;
}

function noteCustomCalls(turn: AssistantTurn, scribe: ResponsesScribe, custom: Set<string>): void {
  for (const part of turn.parts) {
    if (part.type !== "tool-call") continue;
    if (isNativeCustom(part, scribe)) custom.add(part.id);
    else custom.delete(part.id);
  }
}

/** The type of reasoning items in this protocol. */
const REASONING: ReadonlySet<unknown> = new Set(["reasoning"]);

/** Items of one assistant turn, in order. Item ids are left out, because each vendor has its own (rule 14). */
function assistantItems(turn: AssistantTurn, scribe: ResponsesScribe): readonly JsonObject[] {
  const reasoning = restoredReasoning(turn, scribe, REASONING);
  const items: JsonObject[] = [];
  const lastCall = turn.parts.findLastIndex((part) => part.type === "tool-call");
  let content: JsonObject[] | undefined;
  for (const [index, part] of turn.parts.entries()) {
    if (part.type === "text" || part.type === "refusal") {
      if (part.text === "") continue;
      if (content === undefined || part.startsMessage) {
        content = [];
        items.push({ type: "message", role: "assistant", content, phase: phaseOf(index < lastCall, scribe) });
      }
      content.push(
        part.type === "text"
          ? { type: "output_text", text: part.text, annotations: [] }
          : { type: "refusal", refusal: part.text },
      );
      continue;
    }
    content = undefined;
    if (part.type === "tool-call") items.push(callItem(part, scribe));
    else for (const item of reasoning?.get(part) ?? []) items.push(replayed(item));
  }
  const kept = withoutLooseReasoning(items);
  if (kept.length < items.length) ignoreReasoning(scribe);
  return kept;
}

/**
 * The `phase` of an earlier message. Models of the protocol's own vendor degrade without it: text before a call is
 * commentary, all other text the final answer (rule 14).
 */
function phaseOf(isBeforeCall: boolean, { route }: ResponsesScribe): string | undefined {
  if (!route.capabilities.openaiNative) return undefined;
  return isBeforeCall ? "commentary" : "final_answer";
}

function callItem(call: ToolCallPart, scribe: ResponsesScribe): JsonObject {
  const name = scribe.names.nameOf(call.tool);
  const callId = scribe.ids.ofCall(call.id);
  return isNativeCustom(call, scribe)
    ? { type: "custom_tool_call", call_id: callId, name, input: call.input }
    : { type: "function_call", call_id: callId, name, arguments: argumentsText(call.tool, call.input) };
}

/** The protocol's own vendor refuses reasoning at the end, so it is left out. */
function withoutLooseReasoning(items: readonly JsonObject[]): readonly JsonObject[] {
  const last = items.findLastIndex((item) => item.type !== "reasoning");
  return items.slice(0, last + 1);
}

/** A reasoning item as it is sent back; only the server sets `status`. */
function replayed(item: JsonObject): JsonObject {
  const { status: _, ...kept } = item;
  return kept;
}

function outputItem(result: ToolResult, custom: boolean, scribe: ResponsesScribe): JsonObject {
  return {
    type: custom ? "custom_tool_call_output" : "function_call_output",
    call_id: scribe.ids.ofResult(result.callId),
    output: outputContent(result, scribe),
  };
}

function outputContent(result: ToolResult, scribe: ResponsesScribe): unknown {
  const only = result.content[0];
  if (result.plain && only?.type === "text") return result.isError ? errorText(only.text) : only.text;
  const parts = result.content.map((part) =>
    part.type === "tool-reference"
      ? { type: "input_text", text: scribe.names.nameOf({ kind: "function", name: part.name }) }
      : markedPart(part, scribe),
  );
  if (result.isError) return markedAsError(parts);
  return parts.length > 0 ? parts : "";
}

/** Marks the first text as the error of a failed call (rule 18). */
function markedAsError(parts: readonly JsonObject[]): readonly JsonObject[] {
  const first = parts.findIndex((part) => part.type === "input_text" && typeof part.text === "string");
  if (first < 0) return [{ type: "input_text", text: errorText("") }, ...parts];
  return parts.map((part, index) => (index === first ? { ...part, text: errorText(String(part.text)) } : part));
}
