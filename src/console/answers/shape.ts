/**
 * Helpers with which `answers/` declares the forms of answers as TypeBox schemas, which are also those of the OpenAPI
 * document.
 */
import { type Static, type TObject, type TProperties, type TSchema, type TUnsafe, Type } from "../vocabulary.ts";

/** An object with exactly these members. Its `title` makes it a component of the OpenAPI document. */
export function object<P extends TProperties>(title: string, properties: P): TObject<P> {
  return Type.Object(properties, { title, additionalProperties: false });
}

export function list<S extends TSchema>(items: S): TUnsafe<readonly Static<S>[]> {
  return Type.Unsafe(Type.Array(items));
}

/** A page of a list. `next` requests the page after it. */
export function page<S extends TSchema, P extends TProperties = Record<never, never>>(
  title: string,
  item: S,
  more: P = {} as P,
) {
  return object(title, { items: list(item), ...more, next: NEXT });
}

export const text = (description: string, example: string) => Type.String({ description, examples: [example] });
export const count = (description: string, example: number) => Type.Integer({ description, examples: [example] });
export const flag = (description: string) => Type.Boolean({ description });
export function oneOf<W extends string>(description: string, ...words: readonly W[]): TUnsafe<W> {
  return Type.Unsafe({ type: "string", enum: words, description });
}
/** `revoked` is final. */
export const keyStatus = oneOf(
  "A suspended key is refused until it is resumed; `revoked` is final.",
  "normal",
  "suspended",
  "revoked",
);
export function orNull<S extends TSchema>(shape: S): TUnsafe<Static<S> | null> {
  const { type, enum: words } = shape as { readonly type?: unknown; readonly enum?: readonly unknown[] };
  return Type.Unsafe({ ...shape, type: [type, "null"], ...(words && { enum: [...words, null] }) });
}

/** An object whose member names are not fixed. */
export function mapOf<S extends TSchema>(description: string, values: S): TUnsafe<Readonly<Record<string, Static<S>>>> {
  return Type.Unsafe({ type: "object", description, additionalProperties: values });
}

/** US dollars, exactly: two to nine decimals, never an exponent. */
export const usd = (description: string, example = "10.00") =>
  Type.String({
    pattern: "^-?[0-9]+\\.[0-9]{2,9}$",
    description: `${description}, in US dollars.`,
    examples: [example],
  });
export const instant = (description: string) =>
  Type.String({ format: "date-time", description, examples: ["2026-08-31T12:00:00.000Z"] });
export const day = (description: string) => Type.String({ format: "date", description, examples: ["2026-08-31"] });
/** Any JSON, for values whose form this API does not define. */
export const anything = (description: string) => Type.Unknown({ description });

const NEXT = orNull(text("The `cursor` of the next page; null on the last one.", "alice"));
