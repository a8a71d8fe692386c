/**
 * What a server's reply or event says of its count and of its end, found in the bytes of one that is too dear to parse as a whole
 * (`hasTooManyNames`): it is refused, and what the server has counted is still what is billed.
 */
import { type JsonObject, objectOf, objectsIn, parseObject } from "../../values/json-object.ts";
import { decodeUtf8, elementSpans, findMembers } from "../../wire/json.ts";

/** A longer value is no count. */
const VALUE_BYTES_MAX = 16 * 1024;
/** Choices that are looked at; the protocol has no more. */
const CHOICES_MAX = 128;

/** Where the three protocols, and servers that have a place of their own, say it. */
const SAID = ["type", "usage", "timings"] as const;
const SAID_INSIDE: Readonly<Record<string, readonly string[]>> = {
  x_groq: ["usage"],
  delta: ["stop_reason"],
  response: ["usage", "status", "incomplete_details"],
};
const SAID_OF_CHOICE = ["index", "finish_reason", "usage"] as const;
const PLACES: readonly string[] = [...SAID, ...Object.keys(SAID_INSIDE), "choices"];

/** @returns a reply, or an event, with nothing else in it; undefined where it counts nothing, so that no older count is taken for the last. */
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

/** Of each choice its end and its own count. */
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

/** A short value; undefined of a long or broken one. */
function shortValue(json: Uint8Array): unknown {
  const text = json.length > VALUE_BYTES_MAX ? undefined : decodeUtf8(json);
  return text === undefined ? undefined : parseObject(`{"value":${text}}`)?.value;
}
