/**
 * JSON Schemas in the form that the messages protocol requires: an object at the root for tools
 * (docs/translation-rules.md rule 33), and the closed dialect of structured output (rule 26).
 */

import { isObject, type JsonObject } from "../../values/json-object.ts";
import { setOwn } from "../../wire/json.ts";
import { EMPTY_OBJECT_SCHEMA } from "../rules/tool-wrap.ts";

const VARIANTS = ["oneOf", "anyOf", "allOf"] as const;

/** A tool's schema with an object root, and the note that this adds to its description. */
interface ObjectRoot {
  readonly schema: JsonObject;
  readonly note: string | undefined;
}

/**
 * Gives a tool's schema `type: "object"` at the root. Variants at the root become one object whose `required` contains
 * only what every variant requires; the original goes into the description.
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
  const required = new Set<unknown>(Array.isArray(ownRequired) ? ownRequired : []);
  for (const group of [oneOf, anyOf]) {
    const variants = objects(group);
    for (const variant of variants) takeProperties(properties, variant);
    for (const name of requiredByAll(variants)) required.add(name);
  }
  // All parts of `allOf` apply at once, so what one of them requires is required.
  for (const part of objects(allOf)) {
    takeProperties(properties, part);
    for (const name of requiredOf(part)) required.add(name);
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

/** Keywords whose value is one schema, a list of schemas, or a map of schemas. */
const ONE = new Set(["items"]);
const LIST = new Set(["anyOf", "oneOf", "allOf"]);
const MAP = new Set(["properties", "$defs", "definitions"]);
/** With one of these, a schema is more than its own members, so it is not a map. */
const REFERRING = ["$ref", ...LIST];
/** Keywords that are kept unchanged. */
const KEPT = new Set(["type", "description", "title", "enum", "const", "required", "$ref", "default"]);

/**
 * A schema in the closed dialect of messages' structured output: every object closed, `oneOf` as `anyOf`, no `$schema`.
 * Other keywords move into the description, as in the official SDK's helper.
 */
export function closedSchema(schema: JsonObject): JsonObject {
  const closed: Record<string, unknown> = {};
  const moved: string[] = [];
  for (const keyword in schema) {
    if (keyword === "$schema" || keyword === "additionalProperties") continue;
    const value = schema[keyword];
    if (hasKeyword(keyword, value)) closed[keyword === "oneOf" ? "anyOf" : keyword] = closedValue(keyword, value);
    else moved.push(`${keyword}: ${JSON.stringify(value)}`);
  }
  if (isObjectSchema(schema)) closed.additionalProperties = false;
  if (moved.length > 0) {
    const before = typeof closed.description === "string" ? `${closed.description}\n\n` : "";
    closed.description = `${before}{${moved.join(", ")}}`;
  }
  return closed;
}

function isObjectSchema({ type, properties }: JsonObject): boolean {
  return type === "object" || (Array.isArray(type) && type.includes("object")) || isObject(properties);
}

/**
 * Whether the closed form of a schema allows other answers than the schema: because the schema says that objects may
 * have more members, or because it has keywords that only the description keeps. An object that says nothing about
 * further members does not count, because every answer that its closed form allows fits it.
 */
export function losesInClosing(schema: JsonObject): boolean {
  if (schema.additionalProperties !== undefined && schema.additionalProperties !== false) return true;
  for (const keyword in schema) {
    if (keyword === "$schema" || keyword === "additionalProperties") continue;
    const value = schema[keyword];
    if (!hasKeyword(keyword, value) || someSchemaIn(keyword, value, losesInClosing)) return true;
  }
  return false;
}

/** Whether an object of a schema has no members of its own but may have any; its closed form could only be `{}`. */
export function hasMap(schema: JsonObject): boolean {
  if (isMap(schema)) return true;
  for (const keyword in schema) if (someSchemaIn(keyword, schema[keyword], hasMap)) return true;
  return false;
}

function isMap(schema: JsonObject): boolean {
  if (!isObjectSchema(schema)) return false;
  const { properties, additionalProperties, patternProperties } = schema;
  const isEmpty = !isObject(properties) || Object.keys(properties).length === 0;
  const isOpen = additionalProperties !== false || isObject(patternProperties);
  return isEmpty && isOpen && !REFERRING.some((keyword) => Object.hasOwn(schema, keyword));
}

/**
 * Whether one of the schemas in a keyword of the closed dialect satisfies `isSuch`. No list is made, because there may
 * be tens of thousands.
 */
function someSchemaIn(keyword: string, value: unknown, isSuch: (schema: JsonObject) => boolean): boolean {
  if (ONE.has(keyword)) return isObject(value) && isSuch(value);
  if (LIST.has(keyword)) return Array.isArray(value) && value.some((one) => isObject(one) && isSuch(one));
  if (!MAP.has(keyword) || !isObject(value)) return false;
  for (const name in value) {
    const one = value[name];
    if (isObject(one) && isSuch(one)) return true;
  }
  return false;
}

/** Whether the closed dialect has this keyword with this type of value; the caller checks the schemas inside. */
function hasKeyword(keyword: string, value: unknown): boolean {
  if (KEPT.has(keyword)) return true;
  if (ONE.has(keyword) || MAP.has(keyword)) return isObject(value);
  if (LIST.has(keyword)) return Array.isArray(value);
  if (keyword === "minItems") return value === 0 || value === 1;
  return keyword === "format" && STRING_FORMATS.has(value);
}

function closedValue(keyword: string, value: unknown): unknown {
  if (ONE.has(keyword) && isObject(value)) return closedSchema(value);
  if (MAP.has(keyword) && isObject(value)) return closedMembers(value);
  if (!LIST.has(keyword) || !Array.isArray(value)) return value;
  return value.map((one) => (isObject(one) ? closedSchema(one) : one));
}

function closedMembers(members: JsonObject): JsonObject {
  const closed: Record<string, unknown> = {};
  for (const name in members) {
    const value = members[name];
    setOwn(closed, name, isObject(value) ? closedSchema(value) : value);
  }
  return closed;
}

/** Whether a tool's schema is already in the closed dialect, so that `strict: true` may be sent with it (rule 33). */
export function isClosed(schema: JsonObject): boolean {
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === "additionalProperties") continue;
    if (keyword === "$schema" || keyword === "oneOf" || !fitsKeyword(keyword, value)) return false;
  }
  return !isObjectSchema(schema) || schema.additionalProperties === false;
}

function fitsKeyword(keyword: string, value: unknown): boolean {
  if (ONE.has(keyword)) return isObject(value) && isClosed(value);
  if (LIST.has(keyword)) return Array.isArray(value) && value.every((one) => isObject(one) && isClosed(one));
  if (MAP.has(keyword)) return isObject(value) && Object.values(value).every((one) => isObject(one) && isClosed(one));
  return hasKeyword(keyword, value);
}
