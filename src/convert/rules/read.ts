/**
 * Reads members of a client's JSON. `null` counts as absent, as in all three protocols; anything else of the wrong type
 * is refused with its path.
 */
import { type Cause, type Refusal, refusal } from "../../values/errors.ts";
import { isObject, type JsonObject } from "../../values/json-object.ts";
import { shownValue, wholeNumber } from "../../values/words/shown.ts";

/** A required object. */
export function record(value: unknown, param: string): JsonObject {
  if (value === undefined || value === null) return refuse("missing_field", param, `${param} is required.`);
  return isObject(value)
    ? value
    : refuse("wrong_type", param, `${param} must be an object; it is ${shownValue(value)}.`);
}

/** An optional object. */
export function optionalRecord(value: unknown, param: string): JsonObject | undefined {
  return value === undefined || value === null ? undefined : record(value, param);
}

/** A required string. */
export function text(value: unknown, param: string): string {
  if (value === undefined || value === null) return refuse("missing_field", param, `${param} is required.`);
  return typeof value === "string"
    ? value
    : refuse("wrong_type", param, `${param} must be a string; it is ${shownValue(value)}.`);
}

/** An optional string. */
export function optionalText(value: unknown, param: string): string | undefined {
  return value === undefined || value === null ? undefined : text(value, param);
}

/** An optional boolean. */
export function optionalFlag(value: unknown, param: string): boolean | undefined {
  if (value === undefined || value === null) return undefined;
  return typeof value === "boolean"
    ? value
    : refuse("wrong_type", param, `${param} must be true or false; it is ${shownValue(value)}.`);
}

/** An optional number within [min, max]. */
export function optionalNumber(value: unknown, param: string, min: number, max: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && value >= min && value <= max) return value;
  return refuse("wrong_type", param, `${param} must be a number from ${min} to ${max}; it is ${shownValue(value)}.`);
}

/** An optional whole number of at least `min`. */
export function optionalCount(value: unknown, param: string, min: number): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min) return value;
  return refuse("wrong_type", param, `${param} must be ${wholeNumber(min, value)}; it is ${shownValue(value)}.`);
}

/** An optional array. @param demand what the refusal of anything else asks for. */
export function optionalList(value: unknown, param: string, demand = "an array"): readonly unknown[] | undefined {
  if (value === undefined || value === null) return undefined;
  return Array.isArray(value)
    ? value
    : refuse("wrong_type", param, `${param} must be ${demand}; it is ${shownValue(value)}.`);
}

/** An optional array, where the protocol also allows a string, which the caller has read already. */
export function listBesideText(value: unknown, param: string): readonly unknown[] | undefined {
  return optionalList(value, param, "a string or an array");
}

/** An optional value of a closed set (docs/translation-rules.md rule 4). */
export function optionalWord<W extends string>(value: unknown, param: string, words: readonly W[]): W | undefined {
  if (value === undefined || value === null) return undefined;
  const found = words.find((word) => word === value);
  return (
    found ?? refuse("wrong_type", param, `${param} must be one of ${words.join(", ")}; it is ${shownValue(value)}.`)
  );
}

/*
 * How a translator refuses. Outside of this folder a refusal is a return value. Inside, each of forty levels of nested
 * blocks would have to return it, so it is an exception from `refuse` to the enclosing `refusing`.
 */

class Refused extends Error {
  readonly refusal: Refusal;
  constructor(value: Refusal) {
    super("refused");
    this.refusal = value;
  }
}

/**
 * Ends the translation with a refusal.
 * @param param the member at fault, in the client's spelling.
 * @param detail one sentence about this request, with its full stop.
 * @param remedy what helps in this case, if the cause's own remedy does not say it.
 * @param details what programs read of it in the form of Anthropic.
 */
export function refuse(
  cause: Extract<Cause, "untranslatable" | "unsupported_parameter" | "wrong_type" | "missing_field">,
  param: string,
  detail: string,
  remedy?: string,
  details?: JsonObject,
): never {
  throw new Refused(refusal(cause, { param, detail, remedy }, { details }));
}

/**
 * Runs a translation; returns its result, or the refusal that ended it. Other exceptions are defects and pass through.
 */
export function refusing<T>(work: () => T): T | Refusal {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refused) return error.refusal;
    throw error;
  }
}
