/** Tools and tool choices in chat's own form, both ways. */

import { isDeepStrictEqual } from "node:util";
import { isGiven, isObject, type JsonObject } from "../../values/json-object.ts";
import type { CustomTool, FunctionTool, ToolChoice, ToolDefinition, ToolRef } from "../hub.ts";
import { cacheMark } from "../rules/cache-marks.ts";
import { optionalFlag, optionalList, optionalRecord, optionalText, record, refuse, text } from "../rules/read.ts";
import type { OfferedTool, ToolOffer } from "../rules/tool-offer.ts";
import { FREEFORM_SCHEMA, freeformDescription } from "../rules/tool-wrap.ts";

/** `tools`, and the deprecated `functions` in addition to them. */
export function decodeTools(json: JsonObject): readonly ToolDefinition[] {
  const tools = optionalList(json.tools, "tools") ?? [];
  const functions = optionalList(json.functions, "functions") ?? [];
  return [
    ...tools.map((raw, index) => decodeTool(record(raw, `tools[${index}]`), `tools[${index}]`)),
    ...functions.map((raw, index) => functionTool(record(raw, `functions[${index}]`), `functions[${index}]`)),
  ];
}

/** Whether the tools are only in the deprecated form; the reply's call is then in that form too (rule 37). */
export function hasFunctionsOnly({ tools, functions }: JsonObject): boolean {
  return isGiven(functions) && !(Array.isArray(tools) && tools.length > 0);
}

function decodeTool(tool: JsonObject, param: string): ToolDefinition {
  if (tool.type === "function" || (tool.type === undefined && isObject(tool.function))) {
    return functionTool(record(tool.function, `${param}.function`), `${param}.function`, tool);
  }
  if (tool.type === "custom") return customTool(record(tool.custom, `${param}.custom`), `${param}.custom`);
  const hosted = text(tool.type, `${param}.type`);
  return { type: "hosted", hosted, native: tool, param: `${param}.type`, demanded: false };
}

/** @param outer the object around the function, which may also have a cache breakpoint. */
function functionTool(tool: JsonObject, param: string, outer: JsonObject = tool): FunctionTool {
  return {
    type: "function",
    tool: { kind: "function", name: text(tool.name, `${param}.name`) },
    description: optionalText(tool.description, `${param}.description`),
    schema: optionalRecord(tool.parameters, `${param}.parameters`),
    strict: optionalFlag(tool.strict, `${param}.strict`),
    cache: cacheMark(outer.cache_control ?? tool.cache_control, `${param}.cache_control`),
    param,
  };
}

function customTool(tool: JsonObject, param: string): CustomTool {
  const format = optionalRecord(tool.format, `${param}.format`);
  const grammar = format?.type === "grammar" ? record(format.grammar, `${param}.format.grammar`) : undefined;
  return {
    type: "custom",
    tool: { kind: "custom", name: text(tool.name, `${param}.name`) },
    description: optionalText(tool.description, `${param}.description`),
    grammar: grammar && {
      syntax: text(grammar.syntax, `${param}.format.grammar.syntax`),
      definition: text(grammar.definition, `${param}.format.grammar.definition`),
    },
    param,
  };
}

/**
 * `tool_choice`, or the deprecated `function_call`. The protocol's own vendor takes the latter only with `functions`.
 * If both are given and contradict each other, the request is refused.
 */
export function decodeToolChoice(json: JsonObject): ToolChoice | undefined {
  const choice = isGiven(json.tool_choice) ? choiceOf(json.tool_choice) : undefined;
  const deprecated = functionCallOf(json);
  if (choice && deprecated && !isDeepStrictEqual(choice, deprecated)) {
    refuse("unsupported_parameter", "function_call", "function_call contradicts tool_choice.");
  }
  return choice ?? deprecated;
}

function functionCallOf({ function_call: call }: JsonObject): ToolChoice | undefined {
  if (!isGiven(call)) return undefined;
  if (call === "auto" || call === "none") return { mode: call };
  const name = text(record(call, "function_call").name, "function_call.name");
  return { mode: "named", tool: { kind: "function", name } };
}

function choiceOf(value: unknown): ToolChoice {
  if (value === "auto" || value === "none" || value === "required") return { mode: value };
  const choice = isObject(value)
    ? value
    : refuse("wrong_type", "tool_choice", "tool_choice must be a known word or an object.");
  if (choice.type === "allowed_tools") {
    const allowed = record(choice.allowed_tools, "tool_choice.allowed_tools");
    const list = optionalList(allowed.tools, "tool_choice.allowed_tools.tools") ?? [];
    return {
      mode: "allowed",
      required: allowed.mode === "required",
      tools: list.map((one, index) => namedTool(one, `tool_choice.allowed_tools.tools[${index}]`)),
    };
  }
  return { mode: "named", tool: namedTool(choice, "tool_choice") };
}

function namedTool(value: unknown, param: string): ToolRef {
  const choice = record(value, param);
  const kind = choice.type === "custom" ? "custom" : "function";
  const inner = record(choice[kind], `${param}.${kind}`);
  return { kind, name: text(inner.name, `${param}.${kind}.name`) };
}

/** A tool in the form that is sent to a chat upstream (docs/translation-rules.md rule 33). */
export function encodeTool(tool: OfferedTool, customNative: boolean): JsonObject {
  const { definition, name } = tool;
  if (definition.type === "custom") {
    return customNative ? nativeCustom(definition, name) : wrappedCustom(definition, name);
  }
  const { description, schema } = definition;
  const strict = definition.type === "function" && definition.strict === true ? true : undefined;
  return { type: "function", function: { name, description, parameters: schema, strict } };
}

function nativeCustom(definition: CustomTool, name: string): JsonObject {
  const { description, grammar } = definition;
  const format = grammar && { type: "grammar", grammar: { definition: grammar.definition, syntax: grammar.syntax } };
  return { type: "custom", custom: { name, description, format } };
}

function wrappedCustom(definition: CustomTool, name: string): JsonObject {
  const description = freeformDescription(definition.description, definition.grammar);
  return { type: "function", function: { name, description, parameters: FREEFORM_SCHEMA } };
}

/** A tool choice in chat's form; a filtered list of tools has already become a mode. */
export function encodeToolChoice(
  choice: ToolOffer["choice"],
  nameOf: (tool: ToolRef) => string,
  isNativeCustom: (tool: ToolRef) => boolean,
): unknown {
  if (choice === undefined) return undefined;
  if (choice.mode === "named") {
    const name = nameOf(choice.tool);
    return isNativeCustom(choice.tool)
      ? { type: "custom", custom: { name } }
      : { type: "function", function: { name } };
  }
  return choice.mode === "allowed" ? (choice.required ? "required" : "auto") : choice.mode;
}
