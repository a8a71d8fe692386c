/** Writes the hub's turns as chat messages (docs/translation-rules.md rules 10, 13, 14, 18 and 38). */

import type { JsonObject } from "../../../values/json-object.ts";
import type { ConvertContext, RouteFacts } from "../../exchange.ts";
import type {
  AssistantTurn,
  FilePart,
  HubRequest,
  ImagePart,
  ReasoningPart,
  ToolCallPart,
  ToolResult,
  UserPart,
} from "../../hub.ts";
import { writtenPromptCacheMark } from "../../rules/cache-marks.ts";
import { ignoreReasoning, openReasoning, originOf } from "../../rules/envelope.ts";
import { type CallIds, safeCallId } from "../../rules/ids.ts";
import type { Losses } from "../../rules/losses.ts";
import { carriedFile, carriedImage, fileName, titledText, urlOfSource } from "../../rules/media.ts";
import { callsOf, settleResults } from "../../rules/pairing.ts";
import { refuse } from "../../rules/read.ts";
import { errorText, joinTexts, reminder } from "../../rules/system.ts";
import type { NameBook } from "../../rules/tool-names.ts";
import { argumentsText } from "../../rules/tool-wrap.ts";
import { mergedDetails, type Returned, returnedOf, returnedToCalls } from "../returned.ts";

/** What the writer of a conversation needs in addition to the turns. */
interface ChatScribe {
  readonly hub: HubRequest;
  readonly route: RouteFacts;
  readonly context: ConvertContext;
  readonly names: NameBook;
  readonly ids: CallIds;
  readonly losses: Losses;
}

type Media = ImagePart | FilePart;

/** The whole conversation, except the leading system text. */
export function writeTurns(scribe: ChatScribe): readonly JsonObject[] {
  const messages: JsonObject[] = [];
  const turns = settleResults(scribe.hub.turns);
  const marks = carriesMarks(scribe.hub, scribe.route);
  let shown: readonly Media[] = [];
  for (const turn of turns) {
    // Images of tool results go to the beginning of the next user message, which is created if there is none (rule 18).
    if (turn.role !== "user" && turn.role !== "tool" && shown.length > 0) {
      messages.push(userMessage(shown, scribe.route, marks));
      shown = [];
    }
    if (turn.role === "user") {
      messages.push(userMessage([...shown, ...turn.parts], scribe.route, marks));
      shown = [];
    } else if (turn.role === "tool") {
      for (const result of turn.results) messages.push(toolMessage(result, scribe));
      shown = turn.results.flatMap((result) => result.content.filter(isShown));
    } else if (turn.role === "assistant") {
      const message = assistantMessage(turn, scribe);
      if (message) messages.push(message);
    } else if (scribe.route.capabilities.midSystem) {
      messages.push({ role: scribe.route.capabilities.systemRole, content: joinTexts(turn.parts) });
    } else messages.push({ role: "user", content: reminder(turn) });
  }
  if (shown.length > 0) messages.push(userMessage(shown, scribe.route, marks));
  return messages;
}

/** Whether a part of a tool result must move to a user message, because tool messages are text only. */
function isShown(part: ToolResult["content"][number]): part is Media {
  return part.type === "image" || (part.type === "file" && !isTextFile(part));
}

function isTextFile(part: FilePart): boolean {
  const { source } = part;
  return source.kind === "text" || (source.kind === "base64" && source.mediaType.startsWith("text/"));
}

/** @param marks whether breakpoints for a prompt cache are written. */
function userMessage(parts: readonly UserPart[], route: RouteFacts, marks: boolean): JsonObject {
  const written = parts.map((part) => markedPart(part, route, marks));
  const only = written.length === 1 ? written[0] : undefined;
  if (written.length === 0) return { role: "user", content: "" };
  const isPlain = only?.type === "text" && only.prompt_cache_breakpoint === undefined;
  return { role: "user", content: isPlain ? only.text : written };
}

function markedPart(part: UserPart, route: RouteFacts, marks: boolean): JsonObject {
  const written = contentPart(part, route);
  if (!marks || part.type === "audio" || part.cache === undefined) return written;
  return { ...written, prompt_cache_breakpoint: writtenPromptCacheMark(part.cache) };
}

/**
 * Whether breakpoints are written: the server takes them, and the client's are of the same kind. Those of messages
 * clients are hints here (rule 3).
 */
export function carriesMarks({ client }: Pick<HubRequest, "client">, { capabilities }: RouteFacts): boolean {
  return capabilities.openaiNative && client === "responses";
}

function contentPart(part: UserPart, route: RouteFacts): JsonObject {
  if (part.type === "text") return { type: "text", text: part.text };
  if (part.type === "image") {
    const url = urlOfSource(carriedImage(part, route.capabilities));
    return { type: "image_url", image_url: { url, detail: part.detail } };
  }
  if (part.type === "file") return fileContent(part, route);
  return refuse("untranslatable", part.param, "Audio cannot be carried to this model.");
}

function fileContent(part: FilePart, route: RouteFacts): JsonObject {
  const file = carriedFile(part, route.capabilities);
  if (file.kind === "text") return { type: "text", text: titledText(part.name, file.text) };
  if (file.kind === "url")
    return refuse("untranslatable", part.param, "Files behind a URL cannot be carried to this model.");
  return { type: "file", file: { file_data: urlOfSource(file), filename: fileName(part, file.mediaType) } };
}

function toolMessage(result: ToolResult, scribe: ChatScribe): JsonObject {
  return { role: "tool", tool_call_id: scribe.ids.ofResult(result.callId), content: resultText(result, scribe) };
}

/** A tool result as one string (rule 13). */
function resultText(result: ToolResult, scribe: ChatScribe): string {
  const content = result.content.map((part) => pieceOf(part, scribe)).join("\n");
  return result.isError ? errorText(content) : content;
}

function pieceOf(part: ToolResult["content"][number], scribe: ChatScribe): string {
  if (part.type === "text") return part.text;
  if (part.type === "image") return "[image]";
  if (part.type === "tool-reference") return scribe.names.nameOf({ kind: "function", name: part.name });
  const file = isTextFile(part) ? carriedFile(part, scribe.route.capabilities) : undefined;
  return file?.kind === "text" ? titledText(part.name, file.text) : "[file]";
}

/** One assistant message; undefined if chat can express nothing of the turn. */
function assistantMessage(turn: AssistantTurn, scribe: ChatScribe): JsonObject | undefined {
  const content = spokenText(turn);
  const natives = turn.parts.filter((part) => part.type === "reasoning").map((part) => nativesOf(part, scribe));
  const sealed = natives.flatMap((list) => (list ?? []).flatMap((native) => returnedOf(native) ?? []));
  const calls = writtenCalls(callsOf(turn), sealed, scribe);
  const isEmpty = content === "" && calls.length === 0;
  const isWhole = natives.every((list) => list !== undefined);
  const details = isWhole ? mergedDetails(sealed.flatMap((one) => one.details)) : [];
  // The details contain the text too.
  const thought = isWhole && details.length === 0 ? restoredText(natives, scribe) : undefined;
  const isKept = !isEmpty && (details.length > 0 || thought !== undefined);
  // It comes from another server, or this server does not want it back.
  if (natives.length > 0 && !isKept) ignoreReasoning(scribe);
  if (isEmpty) return undefined;
  return {
    role: "assistant",
    ...spoken(content, thought, scribe.route),
    reasoning_details: details.length > 0 ? details : undefined,
    ...Object.assign({}, ...sealed.map((one) => one.message)),
    tool_calls: calls.length > 0 ? calls : undefined,
  };
}

/** The text and the reasoning before it, in the member that the server expects (rule 38). */
function spoken(content: string, thought: string | undefined, { capabilities }: RouteFacts): JsonObject {
  const written = content === "" ? null : content;
  if (thought === undefined) return { content: written };
  switch (capabilities.reasoningField) {
    case "thinking_parts": {
      const thinking = { type: "thinking", thinking: [{ type: "text", text: thought }], closed: true };
      return { content: [thinking, ...(content === "" ? [] : [{ type: "text", text: content }])] };
    }
    case "think_tags":
      return { content: `<think>\n${thought.trim()}\n</think>\n\n${content}` };
    default:
      return { content: written, [capabilities.reasoningField]: thought };
  }
}

/** Calls, with the members that their server wants back. */
function writtenCalls(
  calls: readonly ToolCallPart[],
  sealed: readonly Returned[],
  scribe: ChatScribe,
): readonly JsonObject[] {
  const ids = calls.map((call) => safeCallId(call.id));
  const returned = returnedToCalls(ids, sealed);
  const unsigned = returned.size === 0 ? foreignSignature(scribe.route) : undefined;
  return calls.map((call, place) => ({
    ...writtenCall(call, scribe),
    ...(place === 0 ? unsigned : undefined),
    ...returned.get(place),
  }));
}

/**
 * What Gemini accepts instead of a signature if the calls come from another model or a client has lost their signatures
 * (ai.google.dev/gemini-api/docs/thought-signatures, questions and answers). It checks the first call of each step.
 */
function foreignSignature({ capabilities: { callSignatures } }: RouteFacts): JsonObject | undefined {
  if (callSignatures === "none") return undefined;
  return { extra_content: { [callSignatures]: { thought_signature: "skip_thought_signature_validator" } } };
}

/** Joins the texts: within a message without a separator, between messages with a blank line (rule 14). */
function spokenText(turn: AssistantTurn): string {
  const pieces: string[] = [];
  for (const part of turn.parts) {
    if ((part.type !== "text" && part.type !== "refusal") || part.text === "") continue;
    if (part.startsMessage && pieces.length > 0) pieces.push("\n\n");
    pieces.push(part.text);
  }
  return pieces.join("");
}

function writtenCall(call: ToolCallPart, scribe: ChatScribe): JsonObject {
  const id = scribe.ids.ofCall(call.id);
  const name = scribe.names.nameOf(call.tool);
  if (call.tool.kind === "custom" && scribe.route.capabilities.customTools) {
    return { id, type: "custom", custom: { name, input: call.input } };
  }
  return { id, type: "function", function: { name, arguments: argumentsText(call.tool, call.input) } };
}

/**
 * The text of the reasoning that a `roundtrip` upstream wants back. @param natives those of the whole turn (rule 38).
 */
function restoredText(natives: readonly (readonly unknown[] | undefined)[], scribe: ChatScribe): string | undefined {
  if (scribe.route.capabilities.reasoningContent !== "roundtrip") return undefined;
  const words = natives
    .flat()
    .map((native) => (typeof native === "string" ? native : (returnedOf(native)?.text ?? "")));
  return words.filter((one) => one !== "").join("\n\n") || undefined;
}

/**
 * The content of a reasoning part's envelope. Without an envelope, the text is the client's own, as chat clients send
 * it back (and responses clients that did not ask for encrypted content). A messages client's reasoning is signed by
 * the server that made it, so without an envelope there is none.
 */
function nativesOf(part: ReasoningPart, scribe: ChatScribe): readonly unknown[] | undefined {
  if (part.opaque === undefined) return scribe.hub.client === "messages" || part.text === "" ? undefined : [part.text];
  return openReasoning(part.opaque, originOf(scribe.route), scribe.context);
}
