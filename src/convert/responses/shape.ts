/** Tools and tool choices in the form of responses, both ways. */

import { isGiven, isObject, type JsonObject } from "../../values/json-object.ts";
import type { CustomTool, FunctionTool, ToolChoice, ToolDefinition, ToolKind, ToolRef } from "../hub.ts";
import { optionalFlag, optionalList, optionalRecord, optionalText, record, refuse, text } from "../rules/read.ts";
import type { OfferedTool, ToolOffer } from "../rules/tool-offer.ts";
import { RESPONSES_TYPED } from "../rules/tool-typed.ts";
import { EMPTY_OBJECT_SCHEMA, FREEFORM_SCHEMA, freeformDescription } from "../rules/tool-wrap.ts";

/**
 * A list of tools, with namespaces resolved.
 * @param path the path of the list (`tools`, `input[3].tools`).
 */
export function decodeTools(value: unknown, path: string): readonly ToolDefinition[] {
  return (optionalList(value, path) ?? []).flatMap((raw, index) =>
    decodeTool(record(raw, `${path}[${index}]`), `${path}[${index}]`),
  );
}

function decodeTool(tool: JsonObject, param: string): readonly ToolDefinition[] {
  const type = text(tool.type, `${param}.type`);
  if (type === "namespace") return namespaceTools(tool, param);
  return [decodeSingle(type, tool, param, undefined)];
}

function namespaceTools(tool: JsonObject, param: string): readonly ToolDefinition[] {
  const namespace = text(tool.name, `${param}.name`);
  const about = optionalText(tool.description, `${param}.description`);
  return (optionalList(tool.tools, `${param}.tools`) ?? []).map((raw, index) => {
    const path = `${param}.tools[${index}]`;
    const child = record(raw, path);
    const single = decodeSingle(text(child.type, `${path}.type`), child, path, namespace);
    // Only in the first tool of the namespace, because no other protocol has a member for it.
    if (index > 0 || !about || (single.type !== "function" && single.type !== "custom")) return single;
    const description = [`About all tools of ${namespace}: ${about}`, single.description]
      .filter((one) => one)
      .join("\n\n");
    return { ...single, description };
  });
}

function decodeSingle(type: string, tool: JsonObject, param: string, namespace: string | undefined): ToolDefinition {
  if (type === "function") return functionTool(tool, param, namespace);
  if (type === "custom") return customTool(tool, param, namespace);
  if (isClientRun(type, tool)) return typedTool(type, tool, param);
  return { type: "hosted", hosted: type, native: tool, param: `${param}.type`, demanded: false };
}

function functionTool(tool: JsonObject, param: string, namespace: string | undefined): FunctionTool {
  return {
    type: "function",
    tool: { kind: "function", name: text(tool.name, `${param}.name`), namespace },
    description: optionalText(tool.description, `${param}.description`),
    schema: optionalRecord(tool.parameters, `${param}.parameters`),
    strict: optionalFlag(tool.strict, `${param}.strict`),
    param,
  };
}

function customTool(tool: JsonObject, param: string, namespace: string | undefined): CustomTool {
  const format = optionalRecord(tool.format, `${param}.format`);
  return {
    type: "custom",
    tool: { kind: "custom", name: text(tool.name, `${param}.name`), namespace },
    description: optionalText(tool.description, `${param}.description`),
    grammar:
      format?.type === "grammar"
        ? {
            syntax: text(format.syntax, `${param}.format.syntax`),
            definition: text(format.definition, `${param}.format.definition`),
          }
        : undefined,
    param,
  };
}

type ClientRun = keyof typeof RESPONSES_TYPED;

/**
 * A shell in a vendor's container and a search by the vendor are hosted; tools of the same types can be run by the
 * client.
 */
function isClientRun(type: string, tool: JsonObject): type is ClientRun {
  if (type === "tool_search") return tool.execution === "client";
  if (type !== "shell") return type === "local_shell" || type === "apply_patch";
  const environment = isObject(tool.environment) ? tool.environment.type : undefined;
  return environment === undefined || environment === "local";
}

function typedTool(type: ClientRun, tool: JsonObject, param: string): ToolDefinition {
  const form = RESPONSES_TYPED[type];
  return {
    type: "typed",
    tool: { kind: type, name: type },
    native: tool,
    description: optionalText(tool.description, `${param}.description`) ?? form.description,
    schema: optionalRecord(tool.parameters, `${param}.parameters`) ?? form.schema,
    param,
  };
}

/**
 * `tool_choice`.
 * @param tools the definitions, needed for the choice of a whole namespace.
 */
export function decodeToolChoice(value: unknown, tools: readonly ToolDefinition[]): ToolChoice | undefined {
  if (!isGiven(value)) return undefined;
  if (value === "auto" || value === "none" || value === "required") return { mode: value };
  if (!isObject(value)) return refuse("wrong_type", "tool_choice", "tool_choice must be a known word or an object.");
  if (value.type === "allowed_tools") {
    const list = optionalList(value.tools, "tool_choice.tools") ?? [];
    const allowed = list.flatMap((one, index) => {
      const path = `tool_choice.tools[${index}]`;
      return allowedTools(record(one, path), path, tools);
    });
    return { mode: "allowed", required: value.mode === "required", tools: allowed };
  }
  const tool = namedTool(value, "tool_choice");
  return tool ? { mode: "named", tool } : { mode: "hosted", hosted: text(value.type, "tool_choice.type") };
}

function allowedTools(choice: JsonObject, path: string, tools: readonly ToolDefinition[]): readonly ToolRef[] {
  if (choice.type !== "namespace") {
    const tool = namedTool(choice, path);
    return tool ? [tool] : [];
  }
  const namespace = text(choice.name, `${path}.name`);
  return tools.flatMap((one) => (one.type !== "hosted" && one.tool.namespace === namespace ? [one.tool] : []));
}

function namedTool(choice: JsonObject, path: string): ToolRef | undefined {
  const { type } = choice;
  if (type === "function" || type === "custom") {
    const namespace = optionalText(choice.namespace, `${path}.namespace`);
    return { kind: type, name: text(choice.name, `${path}.name`), namespace };
  }
  const kinds: readonly unknown[] = Object.keys(RESPONSES_TYPED);
  return kinds.includes(type) ? { kind: type as ToolKind, name: type as string } : undefined;
}

/**
 * A tool in the form that is sent to a responses upstream; `strict` is always written, because its default differs
 * (docs/translation-rules.md rule 33).
 */
export function encodeTool(tool: OfferedTool, customNative: boolean): JsonObject {
  const { definition, name } = tool;
  if (definition.type === "custom") return encodeCustom(definition, name, customNative);
  const strict = definition.type === "function" && definition.strict === true;
  const { description } = definition;
  return { type: "function", name, description, parameters: definition.schema ?? EMPTY_OBJECT_SCHEMA, strict };
}

function encodeCustom(definition: CustomTool, name: string, native: boolean): JsonObject {
  const { description, grammar } = definition;
  if (native) {
    const format = grammar && { type: "grammar", syntax: grammar.syntax, definition: grammar.definition };
    return { type: "custom", name, description, format };
  }
  return {
    type: "function",
    name,
    description: freeformDescription(description, grammar),
    parameters: FREEFORM_SCHEMA,
    strict: false,
  };
}

/** A tool choice in the form of responses, which does not nest it. */
export function encodeToolChoice(
  choice: ToolOffer["choice"],
  nameOf: (tool: ToolRef) => string,
  isNativeCustom: (tool: ToolRef) => boolean,
): unknown {
  if (choice === undefined) return undefined;
  const flat = (tool: ToolRef) => ({ type: isNativeCustom(tool) ? "custom" : "function", name: nameOf(tool) });
  if (choice.mode === "named") return flat(choice.tool);
  if (choice.mode !== "allowed") return choice.mode;
  return { type: "allowed_tools", mode: choice.required ? "required" : "auto", tools: choice.tools.map(flat) };
}
