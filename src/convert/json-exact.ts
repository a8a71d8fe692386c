/**
 * Numbers that a double cannot hold, such as the id 9007199254740993 or 1e400, in the parts of a body that only pass
 * through: inputs of tools and schemas. There they stay the text that they arrived as, so that they are written with
 * the same digits (docs/translation-rules.md rule 36). Everywhere else they are numbers.
 */

import { isObject, type JsonObject, objectOf, parseObject } from "../values/json-object.ts";

/** Members whose value belongs to the tool and is not interpreted here. */
const TOOLS_OWN: ReadonlySet<string> = new Set([
  ...["input_schema", "parameters", "schema", "output_schema", "input_examples"],
  ...["arguments", "action", "operation"],
]);

/** The greatest depth that is examined, because the runtime's JSON writer recurses; its parser does not. */
const DEPTH_MAX = 256;

/** The longest text for which a double is sure to be exact: 15 digits, sign and point. */
const SURE_CHARS = 17;

/** Whether a number may have lost digits when it was read. */
function isWide(value: number): boolean {
  if (Number.isInteger(value)) return !Number.isSafeInteger(value);
  return !Number.isFinite(value) || String(value).length > SURE_CHARS;
}

/**
 * Parses JSON text; wide numbers keep their text.
 * @throws SyntaxError as `JSON.parse` does.
 */
export function parseExact(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return holdsWide(value, DEPTH_MAX) ? JSON.parse(text, keepDigits) : value;
}

/**
 * The same object, with wide numbers as text in the parts that only pass through. Returns the object itself if there
 * are none, as in almost every case.
 * @param read the parsed text.
 * @param text returns the text; called only if there are wide numbers.
 */
export function withDigits(read: JsonObject, text: () => string): JsonObject {
  if (!toolsHoldWide(read, DEPTH_MAX)) return read;
  const exact = objectOf(JSON.parse(text(), keepDigits));
  return exact ? (grafted(read, exact, DEPTH_MAX) as JsonObject) : read;
}

/**
 * The longest text whose digits are kept; no model writes as much. A second parse takes seconds for a text that a
 * server has filled with numbers.
 */
const EXACT_CHARS_MAX = 1024 * 1024;

/**
 * Parses one JSON object from a server and keeps the digits in inputs of tools, up to EXACT_CHARS_MAX. Undefined if the
 * text is not an object.
 */
export function parseWithDigits(text: string): JsonObject | undefined {
  const read = parseObject(text);
  return read && text.length <= EXACT_CHARS_MAX && mayHoldInput(text) ? withDigits(read, () => text) : read;
}

/**
 * Hardly any reply or stream event contains an input that is an object. A search for the names comes first: in a reply
 * of 1 KB it takes 0.1 us, the regular expression 1.5 us.
 */
function mayHoldInput(text: string): boolean {
  return (text.includes('"input"') || text.includes('"arguments"')) && INPUT_OBJECT.test(text);
}

const INPUT_OBJECT = /"(?:input|arguments)"\s*:\s*\{/;

function holdsWide(value: unknown, depth: number): boolean {
  if (typeof value === "number") return isWide(value);
  if (typeof value !== "object" || value === null || depth === 0) return false;
  return Object.values(value).some((member) => holdsWide(member, depth - 1));
}

function toolsHoldWide(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null || depth === 0) return false;
  if (Array.isArray(value)) return value.some((one) => toolsHoldWide(one, depth - 1));
  for (const name of Object.keys(value)) {
    const member = (value as JsonObject)[name];
    if (typeof member !== "object" || member === null) continue;
    if (isToolsOwn(value, name) ? holdsWide(member, depth - 1) : toolsHoldWide(member, depth - 1)) return true;
  }
  return false;
}

/** `input` belongs to a tool if its object is a call. In responses, the whole conversation is called `input`. */
function isToolsOwn(owner: object, name: string): boolean {
  if (name !== "input") return TOOLS_OWN.has(name);
  const { type } = owner as JsonObject;
  return type === "tool_use" || type === "server_tool_use" || type === "mcp_tool_use";
}

/** `read` with the tools' own parts of `exact`, which has the same structure. */
function grafted(read: unknown, exact: unknown, depth: number): unknown {
  if (depth === 0) return read;
  if (Array.isArray(read)) {
    if (!Array.isArray(exact)) return read;
    return read.map((one, index) => grafted(one, exact[index], depth - 1));
  }
  if (!isObject(read) || !isObject(exact)) return read;
  const members = Object.entries(read).map(([name, member]) => {
    const isWhole = isToolsOwn(read, name) && typeof member === "object" && member !== null;
    return [name, isWhole ? exact[name] : grafted(member, exact[name], depth - 1)];
  });
  // From entries, because an assignment to a client's `__proto__` would set the prototype.
  return Object.fromEntries(members);
}

/* Functions that the runtime has and the compiler's library does not declare yet. */

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

type Reviver = (this: unknown, name: string, value: unknown) => unknown;

const keepDigits = ((_name: string, value: unknown, { source }: { readonly source?: string }): unknown =>
  typeof value === "number" && source !== undefined && isWide(value) ? rawJSON(source) : value) as Reviver;
