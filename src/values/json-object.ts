/** Access to untrusted JSON: it is `unknown` until one of these functions has checked it. */

/** Any JSON object. Objects that were read are never modified. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether the value is a JSON object, and not null or an array. */
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

/** The objects of an array, without its other elements; none if the value is not an array. */
export function objectsIn(value: unknown): readonly JsonObject[] {
  return arrayOf(value).filter((one): one is JsonObject => objectOf(one) !== undefined);
}

/** The value as a non-empty string, or undefined. */
export function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Whether a member is present and not null: in all three protocols, null means absent. */
export function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

/** Parses one JSON object; undefined if the text is not one. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    return undefined;
  }
}
