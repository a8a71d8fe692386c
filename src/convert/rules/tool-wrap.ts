/**
 * Freeform and typed tools as functions and back (docs/translation-rules.md rule 33): the schema that a function-only
 * upstream sees, the arguments of calls in history, and the input of a call in a reply.
 */

import type { JsonObject } from "../../values/json-object.ts";
import { isObject } from "../../values/json-object.ts";
import type { Grammar, ToolRef } from "../hub.ts";
import { parseExact } from "../json-exact.ts";
import { nestsWithin } from "../reply/depth.ts";
import { freeformText } from "../reply/freeform-input.ts";

/** The schema of a freeform tool's one argument. */
export const FREEFORM_SCHEMA: JsonObject = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
};

/** A freeform tool's description with its grammar after it: all that a function-only model learns of the format. */
export function freeformDescription(description: string | undefined, grammar: Grammar | undefined): string {
  const rule =
    grammar === undefined
      ? "The argument `input` is free text."
      : `The argument \`input\` is text that follows this ${grammar.syntax} grammar:\n${grammar.definition}`;
  return description ? `${description}\n\n${rule}` : rule;
}

/** Arguments as JSON text for a call in history, of either kind. */
export function argumentsText(tool: ToolRef, input: string): string {
  if (tool.kind === "custom") return JSON.stringify({ input });
  return input.trim() === "" ? "{}" : input;
}

/** Arguments as an object; what is not one is kept as `_raw_arguments` (rule 36). */
export function argumentsObject(tool: ToolRef, input: string): JsonObject {
  if (tool.kind === "custom") return { input };
  return parseArguments(input);
}

/**
 * Arguments as an object, from JSON text: empty for `""` and `null`; text that is no object, or nests too deep to be
 * written again, goes under `_raw_arguments`.
 */
export function parseArguments(json: string): JsonObject {
  if (json.trim() === "") return {};
  const value = parse(json);
  if (value === null) return {};
  return isObject(value) && nestsWithin(value) ? value : { _raw_arguments: json };
}

/**
 * The client's input of a call from the upstream's arguments: for a freeform tool the string under `input`, or the raw
 * text when there is none; for all others the text itself, `{}` when it is empty.
 */
export function unwrapInput(tool: ToolRef, upstreamArguments: string): string {
  if (tool.kind !== "custom") return upstreamArguments.trim() === "" ? "{}" : upstreamArguments;
  const text = freeformText(upstreamArguments);
  if (text !== undefined) return text;
  const value = parse(upstreamArguments);
  return isObject(value) && typeof value.input === "string" ? value.input : upstreamArguments;
}

function parse(json: string): unknown {
  try {
    return parseExact(json);
  } catch {
    return undefined;
  }
}
