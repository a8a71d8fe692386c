/**
 * Numbers that a double cannot hold, such as the id 9007199254740993 or 1e400, in the parts of a body that only pass
 * through: inputs of tools and schemas. There they stay the text that they came as, so that what is written again has the
 * digits that were read (docs/translation-rules.md rule 36). Everywhere else a number is a number.
 */

import { isObject, type JsonObject, objectOf, parseObject } from "../values/json-object.ts";

/** Members whose value is nobody's here but the tool's. */
const TOOLS_OWN: ReadonlySet<string> = new Set([
  ...["input_schema", "parameters", "schema", "output_schema", "input_examples"],
  ...["arguments", "action", "operation"],
]);

/** Deeper than this nothing is looked at: the runtime's writer recurses, its reader does not. */
const DEPTH_MAX = 256;

/** Longest text that a double writes and is sure to mean: 15 digits, sign and point. */
const SURE_CHARS = 17;

/** Whether a number may have lost digits when it was read. */
function isWide(value: number): boolean {
  if (Number.isInteger(value)) return !Number.isSafeInteger(value);
  return !Number.isFinite(value) || String(value).length > SURE_CHARS;
}

/**
 * Parses JSON text with wide numbers as they are written.
 * @throws SyntaxError as `JSON.parse` does.
 */
export function parseExact(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return holdsWide(value, DEPTH_MAX) ? JSON.parse(text, keepDigits) : value;
}

/**
 * The same object with wide numbers as they are written, in the parts that only pass through; the object itself where
 * there are none, as almost always.
 * @param read what a parser has made of the text.
 * @param text gives the text; called only where there are any.
 */
export function withDigits(read: JsonObject, text: () => string): JsonObject {
  if (!toolsHoldWide(read, DEPTH_MAX)) return read;
  const exact = objectOf(JSON.parse(text(), keepDigits));
  return exact ? (grafted(read, exact, DEPTH_MAX) as JsonObject) : read;
}

/** No model writes as much as this; to read its numbers once more takes seconds where a server has filled it with them. */
const EXACT_CHARS_MAX = 1024 * 1024;

/**
 * Parses one JSON object of a server, with the digits that inputs of tools in it have, up to EXACT_CHARS_MAX; undefined when the
 * text is not one.
 */
export function parseWithDigits(text: string): JsonObject | undefined {
  const read = parseObject(text);
  return read && text.length <= EXACT_CHARS_MAX && mayHoldInput(text) ? withDigits(read, () => text) : read;
}

/**
 * Hardly any reply or event of a stream holds an input that is an object. The names are looked for first: in a reply of 1 KB that
 * takes 0.1 us, and the expression 1.5.
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

/** `input` is a tool's where its object is a call; on responses the whole conversation is called so. */
function isToolsOwn(owner: object, name: string): boolean {
  if (name !== "input") return TOOLS_OWN.has(name);
  const { type } = owner as JsonObject;
  return type === "tool_use" || type === "server_tool_use" || type === "mcp_tool_use";
}

/** `read` with the tools' own parts of `exact`, which has the same form. */
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
  // From entries, since an assignment to a stranger's `__proto__` would be one.
  return Object.fromEntries(members);
}

/* What the runtime has and the compiler's library does not describe yet: the text of a value, and a value of given text. */

const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

type Reviver = (this: unknown, name: string, value: unknown) => unknown;

const keepDigits = ((_name: string, value: unknown, { source }: { readonly source?: string }): unknown =>
  typeof value === "number" && source !== undefined && isWide(value) ? rawJSON(source) : value) as Reviver;
