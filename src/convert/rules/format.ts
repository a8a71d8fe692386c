/**
 * Structured output where the upstream has no word for it: a line of system text (docs/translation-rules.md rule 26).
 */

import { isObject, type JsonObject } from "../../values/json-object.ts";
import type { Protocol } from "../../values/protocol.ts";
import type { HubRequest, OutputFormat } from "../hub.ts";
import type { Losses } from "./losses.ts";

/** The member in which each client asked for a format. */
const FORMAT_PARAM: Readonly<Record<Protocol, string>> = {
  chat: "response_format",
  messages: "output_config.format",
  responses: "text.format",
};

/** The name of a schema whose client's protocol has none. */
const NAMELESS = "response";

export interface FormatPlan {
  /** The format to be written natively. */
  readonly native: OutputFormat | undefined;
  /** The line to be added to the system text instead. */
  readonly line: string | undefined;
}

/**
 * Native where the upstream can, else a line, which is a declared loss.
 * @param carries whether the upstream has a member for this kind of format.
 */
export function planFormat(hub: HubRequest, carries: (format: OutputFormat) => boolean, losses: Losses): FormatPlan {
  const { format } = hub;
  if (format === undefined || carries(format)) return { native: format, line: undefined };
  losses.drop(FORMAT_PARAM[hub.client]);
  return { native: undefined, line: approximation(format) };
}

function approximation(format: OutputFormat): string {
  if (format.type === "json_object") return "Respond only with one valid JSON object.";
  return `Respond only with one valid JSON object that follows this JSON Schema:\n${JSON.stringify(format.schema)}`;
}

/** The members of a schema format that chat nests and responses writes flat. */
export function schemaMembers(format: Extract<OutputFormat, { type: "json_schema" }>): JsonObject {
  const { name, description, schema, strict } = format;
  return { name: name ?? NAMELESS, description, schema, strict };
}

/*
 * JSON Schemas as the messages protocol wants them: an object at the root for tools (docs/translation-rules.md rule
 * 33), and the closed dialect of structured output (rule 26).
 */

/** The schema of a tool without parameters. */
export const EMPTY_OBJECT_SCHEMA: JsonObject = { type: "object", properties: {} };

const VARIANTS = ["oneOf", "anyOf", "allOf"] as const;

/** A tool's schema with an object root, and the note that the description needs because of that. */
interface ObjectRoot {
  readonly schema: JsonObject;
  readonly note: string | undefined;
}

/**
 * Gives a tool's schema `type: "object"` at the root; variants at the root become one object whose `required` holds
 * only what every variant requires, and the original goes into the description.
 */
export function objectRoot(schema: JsonObject | undefined): ObjectRoot {
  if (schema === undefined) return { schema: EMPTY_OBJECT_SCHEMA, note: undefined };
  if (!VARIANTS.some((keyword) => Array.isArray(schema[keyword]))) {
    return { schema: schema.type === "object" ? schema : { ...schema, type: "object" }, note: undefined };
  }
  return { schema: mergedVariants(schema), note: `The arguments follow this JSON Schema: ${JSON.stringify(schema)}` };
}

function mergedVariants(schema: JsonObject): JsonObject {
  const { oneOf, anyOf, allOf, properties: own, required: ownRequired, type: _, ...others } = schema;
  const properties: Record<string, unknown> = isObject(own) ? { ...own } : {};
  let required = new Set<unknown>(Array.isArray(ownRequired) ? ownRequired : []);
  for (const group of [oneOf, anyOf]) {
    const variants = objects(group);
    for (const variant of variants) takeProperties(properties, variant);
    required = new Set([...required, ...requiredByAll(variants)]);
  }
  // All of `allOf` hold at once, so what one of them requires is required.
  for (const part of objects(allOf)) {
    takeProperties(properties, part);
    required = new Set([...required, ...requiredOf(part)]);
  }
  const merged: Record<string, unknown> = { ...others, type: "object", properties };
  if (required.size > 0) merged.required = [...required];
  return merged;
}

function objects(group: unknown): readonly JsonObject[] {
  return Array.isArray(group) ? group.filter(isObject) : [];
}

function takeProperties(target: Record<string, unknown>, from: JsonObject): void {
  if (!isObject(from.properties)) return;
  for (const [name, value] of Object.entries(from.properties)) {
    if (!Object.hasOwn(target, name)) setOwn(target, name, value);
  }
}

/** Sets a member even when it is called `__proto__`, as a stranger's property may be. */
function setOwn(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

function requiredOf(schema: JsonObject): readonly unknown[] {
  return Array.isArray(schema.required) ? schema.required : [];
}

function requiredByAll(variants: readonly JsonObject[]): readonly unknown[] {
  const [first, ...others] = variants.map((variant) => new Set(requiredOf(variant)));
  return first === undefined ? [] : [...first].filter((name) => others.every((names) => names.has(name)));
}

const STRING_FORMATS: ReadonlySet<unknown> = new Set([
  "date-time",
  "time",
  "date",
  "duration",
  "email",
  "hostname",
  "uri",
  "ipv4",
  "ipv6",
  "uuid",
]);

/** Keywords that hold one schema, a list of schemas, or a map of schemas. */
const ONE = new Set(["items"]);
const LIST = new Set(["anyOf", "oneOf", "allOf"]);
const MAP = new Set(["properties", "$defs", "definitions"]);
/** Keywords that pass as they are. */
const KEPT = new Set(["type", "description", "title", "enum", "const", "required", "$ref", "default"]);

/**
 * A schema in the closed dialect of messages' structured output: every object closed, `oneOf` as `anyOf`, no `$schema`;
 * what the dialect cannot say moves into the description, as the official SDK's own helper does.
 */
export function closedSchema(schema: JsonObject): JsonObject {
  const closed: Record<string, unknown> = {};
  const told: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === "$schema" || keyword === "additionalProperties") continue;
    if (!takeKeyword(closed, keyword, value)) told.push(`${keyword}: ${JSON.stringify(value)}`);
  }
  if (schema.type === "object" || isObject(schema.properties)) closed.additionalProperties = false;
  if (told.length > 0) {
    const before = typeof closed.description === "string" ? `${closed.description}\n\n` : "";
    closed.description = `${before}{${told.join(", ")}}`;
  }
  return closed;
}

function takeKeyword(closed: Record<string, unknown>, keyword: string, value: unknown): boolean {
  if (KEPT.has(keyword)) closed[keyword] = value;
  else if (ONE.has(keyword) && isObject(value)) closed[keyword] = closedSchema(value);
  else if (LIST.has(keyword) && Array.isArray(value)) {
    closed[keyword === "oneOf" ? "anyOf" : keyword] = value.map((one) => (isObject(one) ? closedSchema(one) : one));
  } else if (MAP.has(keyword) && isObject(value)) closed[keyword] = closedMembers(value);
  else if (keyword === "minItems" && (value === 0 || value === 1)) closed.minItems = value;
  else if (keyword === "format" && STRING_FORMATS.has(value)) closed.format = value;
  else return false;
  return true;
}

function closedMembers(members: JsonObject): JsonObject {
  const closed: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(members)) {
    setOwn(closed, name, isObject(value) ? closedSchema(value) : value);
  }
  return closed;
}

/** Whether a tool's schema already is in the closed dialect, so that `strict: true` may be sent along (rule 33). */
export function isClosed(schema: JsonObject): boolean {
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === "additionalProperties") continue;
    if (keyword === "$schema" || keyword === "oneOf" || !fitsKeyword(keyword, value)) return false;
  }
  return schema.type !== "object" || schema.additionalProperties === false;
}

function fitsKeyword(keyword: string, value: unknown): boolean {
  if (KEPT.has(keyword)) return true;
  if (ONE.has(keyword)) return isObject(value) && isClosed(value);
  if (LIST.has(keyword)) return Array.isArray(value) && value.every((one) => isObject(one) && isClosed(one));
  if (MAP.has(keyword)) return isObject(value) && Object.values(value).every((one) => isObject(one) && isClosed(one));
  if (keyword === "minItems") return value === 0 || value === 1;
  return keyword === "format" && STRING_FORMATS.has(value);
}
