/**
 * The building blocks of the schema, on top of `typebox`. Each returns JSON Schema for editors. Its `errorMessage` is
 * what editors and our own loader show for a wrong value.
 */
import Type, { type Static, type TProperties, type TSchema } from "typebox";
import { Errors } from "typebox/schema";
import { Settings as TypeboxSettings } from "typebox/system";
import { formatDuration, formatSize } from "../compile/units.ts";
import { LIMITS } from "../defaults.ts";

export type { Static, TSchema };
export const optional = Type.Optional;

/** What editors show for a value, in addition to its type. */
interface About {
  readonly description: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

/** In the file, a string may hold `${NAME}` even if the schema requires a pattern. */
const WITH_REFERENCE = ".*\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}.*";
const orReference = (pattern: string): string => `^(?:${pattern}|${WITH_REFERENCE})$`;

/** A mapping with exactly these keys. */
export function section<P extends TProperties>(about: About, properties: P) {
  return Type.Object(properties, { ...about, additionalProperties: false, errorMessage: "must be a mapping of keys" });
}

/** A mapping from names that match one pattern to values of one type. */
export function mapOf<V extends TSchema>(
  about: About & { max: number; min?: number; names: { pattern: string; rule: string } },
  value: V,
) {
  const { max, min, names, ...rest } = about;
  return Type.Record(Type.String({ pattern: names.pattern }), value, {
    ...rest,
    ...(min === undefined ? {} : { minProperties: min }),
    maxProperties: max,
    additionalProperties: false,
    errorMessage: `must be a mapping from names to values; a name ${names.rule}`,
  });
}

export function listOf<V extends TSchema>(about: About & { max: number; min?: number }, item: V) {
  const { max, min, ...rest } = about;
  return Type.Array(item, {
    ...rest,
    ...(min === undefined ? {} : { minItems: min }),
    maxItems: max,
    errorMessage: "must be a list: [one, two], or one line with a dash per entry",
  });
}

/** A string that matches a pattern; `rule` completes "must be". */
export function text(about: About & { pattern: string; rule: string }) {
  const { pattern, rule, ...rest } = about;
  return Type.String({ ...rest, pattern: orReference(pattern), errorMessage: `must be ${rule}` });
}

/**
 * A string that is never shown; the loader recognizes it by `writeOnly`. `file:/path` is replaced by the file's text.
 */
export function secret(about: About) {
  return Type.String({
    ...about,
    minLength: 1,
    writeOnly: true,
    errorMessage: "must be a non-empty string, preferably $" + "{NAME} (an environment variable) or file:/path",
  });
}

/** A whole number within bounds. */
export function count(about: About & { min: number; max: number }) {
  const { min, max, ...rest } = about;
  return Type.Integer({
    ...rest,
    minimum: min,
    maximum: max,
    errorMessage: `must be a whole number from ${min} to ${max}`,
  });
}

/** A whole number of at least 1, or `auto`. */
export function autoOrCount(about: About & { max: number }) {
  const { max, ...rest } = about;
  return Type.Union([Type.Literal("auto"), Type.Integer({ minimum: 1, maximum: max })], {
    ...rest,
    errorMessage: `must be auto, or a whole number from 1 to ${max}`,
  });
}

export function positive(about: About & { max: number }) {
  const { max, ...rest } = about;
  return Type.Number({
    ...rest,
    exclusiveMinimum: 0,
    maximum: max,
    errorMessage: `must be a number above 0 and at most ${max}`,
  });
}

export function flag(about: About) {
  return Type.Boolean({ ...about, errorMessage: "must be true or false" });
}

export function oneOf<const T extends readonly (string | number)[]>(about: About, values: T) {
  // `Type.Enum` loses the literal types of a list that is passed as an argument.
  return Type.Unsafe<T[number]>({ ...about, enum: [...values], errorMessage: `must be one of ${values.join(", ")}` });
}

/** A value of any type. */
export function anything(about: About) {
  return Type.Unknown({ ...about });
}

/** An empty mapping: it has no keys so far. */
export function nothing(about: About) {
  return Type.Object({}, { ...about, additionalProperties: false, errorMessage: "must be an empty mapping: {}" });
}

/** A duration above 0. If its maximum is not that of all timers, the description ends with it. */
export function duration({ maxMs = LIMITS.timerMsMax, ...about }: About & { maxMs?: number }) {
  const bound = maxMs === LIMITS.timerMsMax ? "" : ` At most ${formatDuration(maxMs)}.`;
  return text({
    ...about,
    description: `${about.description}${bound}`,
    pattern: "(?:0|[1-9][0-9]{0,8})(?:ms|s|m|h|d)",
    rule: "a duration: a whole number and a unit (ms, s, m, h, d) without a space, such as 5s",
  });
}

/** A string or a bare whole number, for quantities that people write both ways. */
function textOrInteger(about: About & { pattern: string; max: number; errorMessage: string }) {
  const { pattern, max, errorMessage, ...rest } = about;
  return Type.Union([Type.String({ pattern: orReference(pattern) }), Type.Integer({ minimum: 0, maximum: max })], {
    ...rest,
    errorMessage,
  });
}

/** A size within bounds, with which its description ends. */
export function size({ bounds, ...about }: About & { bounds: { readonly min: number; readonly max: number } }) {
  return textOrInteger({
    ...about,
    description: `${about.description} From ${formatSize(bounds.min)} to ${formatSize(bounds.max)}.`,
    pattern: "[1-9][0-9]{0,11}(?:B|KiB|MiB|GiB|TiB)?",
    max: Number.MAX_SAFE_INTEGER,
    errorMessage: "must be a size: a whole number, in bytes or with the unit B, KiB, MiB, GiB or TiB, such as 32MiB",
  });
}

/** US dollars, exact, as a quoted decimal. A YAML number with a decimal point is binary and cannot hold 0.1 exactly. */
export function usd(about: About) {
  return textOrInteger({
    ...about,
    pattern: "(?:0|[1-9][0-9]{0,6})(?:\\.[0-9]{1,9})?",
    max: 9_000_000,
    errorMessage:
      'must be US dollars as a quoted decimal such as "1.25": from 0 to 9000000, with at most nine decimals ' +
      "(only a whole number may be written without quotes)",
  });
}

export function factor(about: About) {
  return textOrInteger({
    ...about,
    pattern: "(?:0|[1-9][0-9]{0,3})(?:\\.[0-9]{1,6})?",
    max: LIMITS.multiplierMax,
    errorMessage:
      `must be a factor as a quoted decimal such as "1.5": from 0 to ${LIMITS.multiplierMax}, with at most six decimals ` +
      "(only a whole number may be written without quotes)",
  });
}

/** What the checker needs from an error; the schema gives the rest. */
export interface SchemaError {
  readonly keyword: string;
  readonly path: (string | number)[];
  /** Names of missing or unknown keys. */
  readonly names: readonly string[];
}

/** Every deviation of `value` from `schema`. The same path may occur more than once. */
export function schemaErrors(schema: TSchema, value: unknown): SchemaError[] {
  // Typebox stops at 8 by default; the author of a configuration wants to see all errors at once.
  TypeboxSettings.Set({ maxErrors: LIMITS.problemsMax * 4 });
  const [, errors] = Errors(schema, value);
  return errors.map((error) => {
    const params = error.params as { requiredProperties?: string[]; additionalProperties?: string[] };
    return {
      keyword: error.keyword,
      path: pathOf(error.instancePath, value),
      names: params.requiredProperties ?? params.additionalProperties ?? [],
    };
  });
}

/** Parses a JSON Pointer (RFC 6901). A part is a list position if the value that it points into is a list. */
function pathOf(pointer: string, top: unknown): (string | number)[] {
  const path: (string | number)[] = [];
  let value = top;
  for (const part of pointer.split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    path.push(Array.isArray(value) ? Number(key) : key);
    value = (value as Record<string, unknown> | undefined)?.[key];
  }
  return path;
}

/* The patterns of names in the configuration. */

/** Model names come from clients' requests and are matched byte for byte. */
export const MODEL_NAMES = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$",
  rule: "starts with a letter or digit, followed by up to 127 characters of A-Z a-z 0-9 . _ : / -",
};
/** All other names become metric labels and parts of store records. */
export const PLAIN_NAMES = {
  pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
  rule: "starts with a letter or digit, followed by up to 63 characters of A-Z a-z 0-9 . _ -",
};

export const plainName = (description: string) =>
  text({
    description,
    pattern: PLAIN_NAMES.pattern.slice(1, -1),
    rule: `a name that ${PLAIN_NAMES.rule}`,
  });
