/** Looking at JSON that strangers wrote: `unknown` until one of these has seen it. */

/** Any JSON object; nobody writes to one that was read. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether the value is a JSON object; null and arrays are none. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as a JSON object, or undefined for null, arrays and everything else. */
export function objectOf(value: unknown): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

/** The value as an array, or an empty one. */
export function arrayOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The objects of an array, its other elements left out; none for a value that is no array. */
export function objectsIn(value: unknown): readonly JsonObject[] {
  return arrayOf(value).filter((one): one is JsonObject => objectOf(one) !== undefined);
}

/** The value as a non-empty string, or undefined. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Whether a member is there and not null: all three protocols take null for absent. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Parses one JSON object; undefined when the text is not one. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}
