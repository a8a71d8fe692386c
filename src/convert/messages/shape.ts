/** Tools and tool choices in the form of messages, both ways. */

import type { JsonObject } from "../../values/json-object.ts";
import { isObject } from "../../values/json-object.ts";
import type { ToolChoice, ToolDefinition, ToolRef } from "../hub.ts";
import { optionalFlag, optionalList, optionalRecord, optionalText, record, refuse, text } from "../rules/read.ts";
import type { OfferedTool, ToolOffer } from "../rules/tool-offer.ts";
import { messagesTyped } from "../rules/tool-typed.ts";
import { FREEFORM_SCHEMA, freeformDescription } from "../rules/tool-wrap.ts";
import { isClosed, objectRoot } from "./schemas.ts";

/** The tools of a body: functions, typed tools that the client runs, and hosted ones. */
export function decodeTools(value: unknown): readonly ToolDefinition[] {
  return (optionalList(value, "tools") ?? []).map((raw, index) =>
    decodeTool(record(raw, `tools.${index}`), `tools.${index}`),
  );
}

/** One tool. @param param its path. */
export function decodeTool(tool: JsonObject, param: string): ToolDefinition {
  const type = optionalText(tool.type, `${param}.type`);
  if (type === undefined || type === "custom") return ownTool(tool, param);
  const typed = messagesTyped(type);
  if (typed === undefined) {
    return { type: "hosted", hosted: type, native: tool, param: `${param}.type`, demanded: false };
  }
  return {
    type: "typed",
    tool: { kind: "function", name: text(tool.name, `${param}.name`) },
    native: tool,
    description: typed.description,
    schema: typed.schema,
    param,
  };
}

/**
 * A function tool. Deferred tools (`defer_loading`) are offered like all others, because no other protocol can defer
 * them (docs/translation-rules.md rule 33).
 */
function ownTool(tool: JsonObject, param: string): ToolDefinition {
  return {
    type: "function",
    tool: { kind: "function", name: text(tool.name, `${param}.name`) },
    description: optionalText(tool.description, `${param}.description`),
    schema: optionalRecord(tool.input_schema, `${param}.input_schema`),
    strict: optionalFlag(tool.strict, `${param}.strict`),
    cache: isObject(tool.cache_control) ? { ttl: tool.cache_control.ttl === "1h" ? "long" : "short" } : undefined,
    param,
  };
}

/** `tool_choice`; its switch for parallel calls is returned separately. */
export function decodeToolChoice(value: unknown): {
  readonly choice: ToolChoice | undefined;
  readonly parallel: boolean | undefined;
} {
  const choice = optionalRecord(value, "tool_choice");
  if (choice === undefined) return { choice: undefined, parallel: undefined };
  const disabled = optionalFlag(choice.disable_parallel_tool_use, "tool_choice.disable_parallel_tool_use");
  return { choice: choiceOf(choice), parallel: disabled === undefined ? undefined : !disabled };
}

function choiceOf(choice: JsonObject): ToolChoice {
  if (choice.type === "auto" || choice.type === "none") return { mode: choice.type };
  if (choice.type === "any") return { mode: "required" };
  if (choice.type === "tool") {
    return { mode: "named", tool: { kind: "function", name: text(choice.name, "tool_choice.name") } };
  }
  return refuse("wrong_type", "tool_choice.type", "tool_choice.type must be auto, any, tool or none.");
}

/** A tool in the form that is sent to a messages upstream (rule 33). */
export function encodeTool({ definition, name }: OfferedTool): Record<string, unknown> {
  if (definition.type === "custom") {
    const description = freeformDescription(definition.description, definition.grammar);
    return { name, description, input_schema: FREEFORM_SCHEMA };
  }
  const { schema, note } = objectRoot(definition.schema);
  const strict = definition.type === "function" && definition.strict === true && note === undefined && isClosed(schema);
  return {
    name,
    description: [definition.description, note].filter((line) => line).join("\n\n") || undefined,
    input_schema: schema,
    strict: strict || undefined,
    cache_control: definition.type === "function" ? cacheControl(definition.cache) : undefined,
  };
}

/** A cache breakpoint as messages writes it; the short lifetime is the default and is left out (rule 19). */
export function cacheControl(cache: { readonly ttl: "short" | "long" } | undefined): JsonObject | undefined {
  if (cache === undefined) return undefined;
  return cache.ttl === "long" ? { type: "ephemeral", ttl: "1h" } : { type: "ephemeral" };
}

/**
 * A choice as messages writes it, including the switch for parallel calls (rule 33).
 * @param parallel the client's value; only `false` must be written, and not together with `none`.
 */
export function encodeToolChoice(
  choice: ToolOffer["choice"],
  parallel: boolean | undefined,
  nameOf: (tool: ToolRef) => string,
): JsonObject | undefined {
  const word = choiceWord(choice, nameOf);
  if (parallel !== false || word?.type === "none") return word;
  return { ...(word ?? { type: "auto" }), disable_parallel_tool_use: true };
}

function choiceWord(choice: ToolOffer["choice"], nameOf: (tool: ToolRef) => string): JsonObject | undefined {
  if (choice === undefined) return undefined;
  if (choice.mode === "named") return { type: "tool", name: nameOf(choice.tool) };
  if (choice.mode === "allowed") return { type: choice.required ? "any" : "auto" };
  return { type: choice.mode === "required" ? "any" : choice.mode };
}
