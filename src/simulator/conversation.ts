/** The content of a request, in one form for the three protocols; reads only what the reply depends on. */

import type { JsonObject } from "../values/json-object.ts";
import type { Protocol } from "../values/protocol.ts";

interface ReceivedTool {
  readonly name: string;
  readonly kind: "function" | "custom";
  readonly schema: unknown;
  readonly namespace?: string;
}

export interface ReceivedRequest {
  readonly model: string;
  readonly stream: boolean;
  readonly messageCount: number;
  /** Text of the last user turn; empty if the conversation ends with something else. */
  readonly lastUserText: string;
  readonly endsWithToolResult: boolean;
  readonly tools: readonly ReceivedTool[];
  /** The most output tokens that the request allows. */
  readonly outputLimit: number | undefined;
  readonly stopSequences: readonly string[];
  /** Whether the request asks to see reasoning (messages and responses; chat has no standard field for it). */
  readonly wantsThinking: boolean;
  /** Schema of the requested JSON reply; `{}` for any JSON; undefined for text. */
  readonly jsonSchema: unknown;
  /** Number of choices (chat `n`). */
  readonly choices: number;
}

/** The most choices that chat allows in one reply. */
const CHOICES_MAX = 128;

/** Reads a request that has its required fields. */
export function readConversation(protocol: Protocol, body: JsonObject): ReceivedRequest {
  const turns = protocol === "responses" ? inputItems(body.input) : list(body.messages);
  const ending = readEnding(turns);
  return {
    model: String(body.model),
    stream: body.stream === true,
    messageCount: turns.length,
    ...ending,
    tools: readTools(body, turns),
    outputLimit: readLimit(protocol, body),
    stopSequences: readStops(protocol, body),
    wantsThinking: readWantsThinking(protocol, body),
    jsonSchema: readJsonSchema(protocol, body),
    choices: readChoices(protocol, body),
  };
}

/** The value if it is an object, else an empty object. */
export function object(value: unknown): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

/** The elements of an array, each as an object; an empty list if the value is not an array. */
export function list(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.map(object) : [];
}

function inputItems(input: unknown): readonly JsonObject[] {
  return typeof input === "string" ? [{ role: "user", content: input }] : list(input);
}

/** Searches backward for the last turn that decides the reply; a gateway or a client may add system text after it. */
function readEnding(turns: readonly JsonObject[]): { lastUserText: string; endsWithToolResult: boolean } {
  for (let i = turns.length - 1; i >= 0; i--) {
    const turn = turns[i] as JsonObject;
    if (turn.role === "tool" || String(turn.type).endsWith("_output")) {
      return { lastUserText: "", endsWithToolResult: true };
    }
    if (turn.role === "user") {
      const endsWithToolResult = list(turn.content).some((block) => block.type === "tool_result");
      return { lastUserText: textOf(turn.content), endsWithToolResult };
    }
    if (turn.role === "assistant" || String(turn.type).endsWith("_call")) break;
  }
  return { lastUserText: "", endsWithToolResult: false };
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return list(content)
    .filter((part) => part.type === "text" || part.type === "input_text")
    .map((part) => String(part.text))
    .join("\n");
}

function readTools(body: JsonObject, turns: readonly JsonObject[]): ReceivedTool[] {
  const late = turns.filter((turn) => turn.type === "additional_tools").flatMap((turn) => list(turn.tools));
  return [...list(body.tools), ...late].flatMap((tool) => readTool(tool));
}

function readTool(tool: JsonObject, namespace?: string): ReceivedTool[] {
  if (tool.type === "namespace") return list(tool.tools).flatMap((inner) => readTool(inner, String(tool.name)));
  const nested = object(tool.function ?? tool.custom);
  const name = nested.name ?? tool.name;
  if (typeof name !== "string") return [];
  // On messages, `type: "custom"` is the ordinary tool with a schema.
  const kind = tool.type === "custom" && tool.input_schema === undefined ? "custom" : "function";
  const schema = nested.parameters ?? tool.parameters ?? tool.input_schema;
  return [{ name, kind, schema, ...(namespace ? { namespace } : {}) }];
}

function readLimit(protocol: Protocol, body: JsonObject): number | undefined {
  const names = {
    chat: ["max_completion_tokens", "max_tokens"],
    messages: ["max_tokens"],
    responses: ["max_output_tokens"],
  }[protocol];
  return names.map((name) => body[name]).find((value): value is number => typeof value === "number");
}

function readStops(protocol: Protocol, body: JsonObject): readonly string[] {
  const value = { chat: body.stop, messages: body.stop_sequences, responses: undefined }[protocol];
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.filter((stop): stop is string => typeof stop === "string" && stop !== "") : [];
}

function readWantsThinking(protocol: Protocol, body: JsonObject): boolean {
  if (protocol === "messages") return ["enabled", "adaptive"].includes(String(object(body.thinking).type));
  if (protocol === "responses") return (object(body.reasoning).effort ?? "none") !== "none";
  return false;
}

function readJsonSchema(protocol: Protocol, body: JsonObject): unknown {
  const format = {
    chat: object(body.response_format),
    messages: object(object(body.output_config).format ?? body.output_format),
    responses: object(object(body.text).format),
  }[protocol];
  if (format.type === "json_object") return {};
  if (format.type !== "json_schema") return undefined;
  return format.schema ?? object(format.json_schema).schema ?? {};
}

function readChoices(protocol: Protocol, body: JsonObject): number {
  if (protocol !== "chat" || typeof body.n !== "number") return 1;
  return Math.min(CHOICES_MAX, Math.max(1, Math.trunc(body.n)));
}
