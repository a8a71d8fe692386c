/** Validates values of query parameters beyond their form: page sizes and instants. */
import { malformed } from "../refusal.ts";
import { PAGE_DEFAULT } from "../vocabulary.ts";

/**
 * Reads a page size.
 * @throws AdminRefusal 400 outside [1, max]
 */
export function readLimit(text: string | undefined, max: number): number {
  const limit = text === undefined ? PAGE_DEFAULT : Number(text);
  if (limit < 1 || limit > max) {
    throw malformed("limit", `a whole number from 1 to ${max}`, `Ask for at most ${max} and follow \`next\`.`);
  }
  return limit;
}

/**
 * Reads an instant in the form that the schemas require.
 * @returns milliseconds since the epoch
 * @throws AdminRefusal 400 for a date that does not exist
 */
export function readInstant(where: string, typed: string): number {
  const ms = Date.parse(typed);
  // Date.parse reads February 30 as March 2.
  const isReal = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(typed.slice(0, 19));
  if (!isReal) throw malformed(where, "a date that exists", "Check the date.");
  return ms;
}
