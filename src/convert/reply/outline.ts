/**
 * Finds usage and finish reason in the bytes of a reply or event that is too expensive to parse as a whole
 * (`hasTooManyNames`). Such a reply is refused, but the server's usage is still charged.
 */
import { type JsonObject, objectOf, objectsIn, parseObject } from "../../values/json-object.ts";
import { decodeUtf8, elementSpans, findMembers } from "../../wire/json.ts";

/** A longer value is not a usage. */
const VALUE_BYTES_MAX = 16 * 1024;
/** The most choices that are read; the protocol allows no more. */
const CHOICES_MAX = 128;

/** Where the three protocols, and servers with their own members, put usage and finish reason. */
const SAID = ["type", "usage", "timings"] as const;
const SAID_INSIDE: Readonly<Record<string, readonly string[]>> = {
  x_groq: ["usage"],
  delta: ["stop_reason"],
  response: ["usage", "status", "incomplete_details"],
};
const SAID_OF_CHOICE = ["index", "finish_reason", "usage"] as const;
const PLACES: readonly string[] = [...SAID, ...Object.keys(SAID_INSIDE), "choices"];

/**
 * @returns a reply or an event with only these members; undefined if it has no usage, so that an earlier count does not
 * become the last one.
 */
export function outlineOf(json: Uint8Array): JsonObject | undefined {
  const outline: Record<string, unknown> = {};
  for (const [name, { start, end }] of findMembers(json, PLACES)) {
    const value = json.subarray(start, end);
    const inside = SAID_INSIDE[name];
    if (name === "choices") outline.choices = choicesOf(value);
    else outline[name] = inside ? membersOf(value, inside) : shortValue(value);
  }
  const counts = [outline, objectOf(outline.x_groq), objectOf(outline.response), ...objectsIn(outline.choices)];
  const isCounted = outline.timings !== undefined || counts.some((one) => objectOf(one?.usage) !== undefined);
  return isCounted ? outline : undefined;
}

/** The finish reason and usage of each choice. */
function choicesOf(array: Uint8Array): readonly JsonObject[] {
  const choices: JsonObject[] = [];
  for (const { start, end } of elementSpans(array)) {
    if (choices.length === CHOICES_MAX) break;
    choices.push({ ...membersOf(array.subarray(start, end), SAID_OF_CHOICE), delta: {} });
  }
  return choices;
}

function membersOf(object: Uint8Array, names: readonly string[]): JsonObject {
  const members: Record<string, unknown> = {};
  for (const [name, { start, end }] of findMembers(object, names))
    members[name] = shortValue(object.subarray(start, end));
  return members;
}

/** A short value; undefined if it is too long or invalid. */
function shortValue(json: Uint8Array): unknown {
  const text = json.length > VALUE_BYTES_MAX ? undefined : decodeUtf8(json);
  return text === undefined ? undefined : parseObject(`{"value":${text}}`)?.value;
}
