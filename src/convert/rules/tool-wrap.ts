/**
 * Converts freeform and typed tools to functions and back (docs/translation-rules.md rule 33): the schema for an
 * upstream that has only functions, the arguments of calls in the history, and the input of a call in a reply.
 */

import { type Refusal, refusal } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { isObject } from "../../values/json-object.ts";
import type { Grammar, ToolRef, Turn } from "../hub.ts";
import { parseExact } from "../json-exact.ts";
import { nestsWithin } from "../reply/depth.ts";
import { freeformText } from "../reply/freeform-input.ts";

/** The schema of a tool without parameters. */
export const EMPTY_OBJECT_SCHEMA: JsonObject = { type: "object", properties: {} };

/** The schema of a freeform tool's one argument. */
export const FREEFORM_SCHEMA: JsonObject = {
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
};

/**
 * The description of a freeform tool, followed by its grammar. A model that has only functions learns the format from
 * it.
 */
export function freeformDescription(description: string | undefined, grammar: Grammar | undefined): string {
  const rule =
    grammar === undefined
      ? "The argument `input` is free text."
      : `The argument \`input\` is text that follows this ${grammar.syntax} grammar:\n${grammar.definition}`;
  return description ? `${description}\n\n${rule}` : rule;
}

/** The arguments of a call in the history, of either kind, as JSON text. */
export function argumentsText(tool: ToolRef, input: string): string {
  if (tool.kind === "custom") return JSON.stringify({ input });
  return input.trim() === "" ? "{}" : input;
}

/** Arguments as an object; anything else is kept under `_raw_arguments` (rule 36). */
export function argumentsObject(tool: ToolRef, input: string): JsonObject {
  if (tool.kind === "custom") return { input };
  return parseArguments(input);
}

/**
 * Arguments as an object, from JSON text. Empty for `""` and `null`. The text goes under `_raw_arguments` if it is not
 * an object, nests too deep to be written again, or has too many values to be parsed at once.
 */
export function parseArguments(json: string): JsonObject {
  if (json.trim() === "") return {};
  const value = parse(json);
  if (value === null) return {};
  return isObject(value) && nestsWithin(value) ? value : { _raw_arguments: json };
}

/**
 * The client's input of a call, from the upstream's arguments. For a freeform tool it is the string under `input`, or
 * the raw text if there is none, and nothing for an empty object, because a stream has no arguments then; for all
 * others the text itself, or `{}` if that is empty.
 */
export function unwrapInput(tool: ToolRef, upstreamArguments: string): string {
  if (tool.kind !== "custom") return upstreamArguments.trim() === "" ? "{}" : upstreamArguments;
  const text = freeformText(upstreamArguments);
  if (text !== undefined) return text;
  const value = parse(upstreamArguments);
  if (!isObject(value)) return upstreamArguments;
  if (Object.keys(value).length === 0) return "";
  return typeof value.input === "string" ? value.input : upstreamArguments;
}

function parse(json: string): unknown {
  if (hasTooManyValues(json)) return undefined;
  try {
    return parseExact(json);
  } catch {
    return undefined;
  }
}

/*
 * Limits the values in the JSON texts of tool calls. In the body these texts are strings, so the limit on the body's
 * values counts each as one value. Here they are parsed, and a megabyte of small values takes seconds.
 */

/**
 * Values and names in the arguments of all calls of a conversation, or of one call of a reply. Long sessions have a few
 * thousand.
 */
const ARGUMENT_VALUES_MAX = 50_000;

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACE] = [0x22, 0x5c, 0x2c, 0x3a, 0x5b, 0x7b];

/**
 * The number of values and names in a JSON text: each but the first follows a comma, a colon or an opening bracket.
 * Counting stops above `max`. Also gives a number for a text that is not valid JSON.
 */
function valuesUpTo(text: string, max: number): number {
  let count = 1;
  for (let at = 0; at < text.length && count <= max; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) at = endOfString(text, at);
    else if (unit === COMMA || unit === COLON || unit === BRACKET || unit === BRACE) count++;
  }
  return count;
}

/** Whether a text has more values than may be parsed at once. */
function hasTooManyValues(text: string): boolean {
  return text.length > ARGUMENT_VALUES_MAX && valuesUpTo(text, ARGUMENT_VALUES_MAX) > ARGUMENT_VALUES_MAX;
}

/** The end of the string that begins at a quote. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return text.length;
}

/** Refuses a conversation whose calls have more values than can be parsed without blocking other requests. */
export function refusedArguments(turns: readonly Turn[]): Refusal | undefined {
  let left = ARGUMENT_VALUES_MAX;
  for (const turn of turns) {
    if (turn.role !== "assistant") continue;
    for (const part of turn.parts) {
      if (part.type !== "tool-call" || part.tool.kind === "custom") continue;
      left -= valuesUpTo(part.input, left);
      if (left < 0) return refusal("body_too_large", { detail: DETAIL });
    }
  }
  return undefined;
}

const DETAIL = `The arguments of its tool calls have more than ${ARGUMENT_VALUES_MAX} values and names, and the model is served in another protocol.`;
