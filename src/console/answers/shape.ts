/** Words in which `answers.ts` writes the forms of answers: JSON Schema, draft 2020-12, as OpenAPI 3.1 takes it. */

/** A form of JSON. One with a `title` becomes a component of the OpenAPI document. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** An object of exactly these members, all of them always there unless they are named in `optional`. */
export function object(
  title: string,
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { title, type: "object", properties, required, additionalProperties: false };
}

export const list = (items: JsonSchema): JsonSchema => ({ type: "array", items });

/** A page of a listing. `next` is what asks for the page after it. */
export function page(title: string, item: JsonSchema, more: Readonly<Record<string, JsonSchema>> = {}): JsonSchema {
  return object(title, { items: list(item), ...more, next: NEXT });
}

export const text = (description: string, example: string): JsonSchema => ({
  type: "string",
  description,
  examples: [example],
});
export const count = (description: string, example: number): JsonSchema => ({
  type: "integer",
  description,
  examples: [example],
});
export const flag = (description: string): JsonSchema => ({ type: "boolean", description });
export const oneOf = (description: string, ...words: readonly string[]): JsonSchema => ({
  type: "string",
  enum: words,
  description,
});
export const orNull = (shape: JsonSchema): JsonSchema => {
  const nullable = { ...shape, type: [shape.type, "null"] };
  return Array.isArray(shape.enum) ? { ...nullable, enum: [...shape.enum, null] } : nullable;
};

/** US dollars, exactly: two to nine decimals, never an exponent. */
export const usd = (description: string, example = "10.00"): JsonSchema => ({
  type: "string",
  pattern: "^-?[0-9]+\\.[0-9]{2,9}$",
  description: `${description}, in US dollars.`,
  examples: [example],
});
export const instant = (description: string): JsonSchema => ({
  type: "string",
  format: "date-time",
  description,
  examples: ["2026-08-31T12:00:00.000Z"],
});
export const day = (description: string): JsonSchema => ({
  type: "string",
  format: "date",
  description,
  examples: ["2026-08-31"],
});
/** Any JSON, where the form is not this API's to say. */
export const anything = (description: string): JsonSchema => ({ description });

const NEXT = orNull(text("The `cursor` of the next page; null on the last one.", "alice"));
