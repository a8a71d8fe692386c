/** What the texts of a question mean beyond their form: page sizes and instants. */
import { malformed } from "../refusal.ts";

/** Page size when none is asked for. */
const PAGE_DEFAULT = 100;

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
 * Reads an instant of the form that the schemas ask for.
 * @returns milliseconds since the epoch
 * @throws AdminRefusal 400 for one that no calendar has
 */
export function readInstant(where: string, typed: string): number {
  const ms = Date.parse(typed);
  // Date.parse takes the 30th of February for the 2nd of March.
  const isReal = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(typed.slice(0, 19));
  if (!isReal) throw malformed(where, "an instant of the calendar", "Check the date.");
  return ms;
}
