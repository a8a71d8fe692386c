/** Instants in the forms in which people type them. */
import { parseDurationMs } from "../values/time.ts";
import { CliFailure } from "./failure.ts";

/**
 * @param where the option, for the message.
 * @param direction 1: a duration is counted from now, -1: it is a time ago.
 * @returns the instant in the form of the admin API, which validates it.
 * @throws CliFailure 2 for text that is neither a duration in the form of the configuration nor an instant.
 */
export function instantOf(where: string, typed: string, direction: 1 | -1): string {
  const ms = parseDurationMs(typed);
  const at = new Date(Date.now() + direction * (ms ?? Number.NaN));
  if (!Number.isNaN(at.getTime())) return at.toISOString();
  if (/^[0-9]{4}-[0-9]{2}-[0-9]{2}T/.test(typed)) return typed;
  const span = direction === 1 ? "a duration from now" : "a duration before now";
  throw new CliFailure(2, `${where} must be ${span}, such as 30d or 12h, or an instant such as 2027-01-31T12:00:00Z.`);
}
