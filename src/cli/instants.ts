/** Instants as people type them. */
import { parseDurationMs } from "../values/time.ts";
import { CliFailure } from "./failure.ts";

/**
 * @param where the option, for the message.
 * @param direction 1: a duration is from now on, -1: it is how long ago.
 * @returns the instant as the admin API takes it, which judges it.
 * @throws CliFailure 2 for what is neither a duration, as the configuration writes it, nor an instant.
 */
export function instantOf(where: string, typed: string, direction: 1 | -1): string {
  const ms = parseDurationMs(typed);
  const at = new Date(Date.now() + direction * (ms ?? Number.NaN));
  if (!Number.isNaN(at.getTime())) return at.toISOString();
  if (/^[0-9]{4}-[0-9]{2}-[0-9]{2}T/.test(typed)) return typed;
  const span = direction === 1 ? "how long from now" : "how long ago";
  throw new CliFailure(2, `${where} must be ${span}, such as 30d or 12h, or an instant such as 2027-01-31T12:00:00Z.`);
}
