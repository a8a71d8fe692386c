/**
 * Freeform and typed tools as functions and back (docs/translation-rules.md rule 33): the schema that a function-only
 * upstream sees, the arguments of calls in history, and the input of a call in a reply.
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
 * Arguments as an object, from JSON text: empty for `""` and `null`; text that is no object, nests too deep to be
 * written again, or has too many values to be read at once, goes under `_raw_arguments`.
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
  if (hasTooManyValues(json)) return undefined;
  try {
    return parseExact(json);
  } catch {
    return undefined;
  }
}

/*
 * How many values stand in the JSON texts of tool calls. They are strings to the body that they come in, so that its own limit on
 * values counts each as one; where they are parsed, a megabyte of small values takes seconds.
 */

/** Values and names in the arguments of all calls of a conversation, or of one call of a reply. Long sessions have some thousands. */
const ARGUMENT_VALUES_MAX = 50_000;

const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACE] = [0x22, 0x5c, 0x2c, 0x3a, 0x5b, 0x7b];

/**
 * How many values and names a JSON text may have: each but the first comes after a comma, a colon or an opening. Of a text that is
 * no JSON it says something, too. More than `max` is not counted any further.
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

/** Where the string ends that begins at a quote. */
function endOfString(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return at;
  }
  return text.length;
}

/** Refuses a conversation whose calls have more of them than can be read without keeping others waiting. */
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
