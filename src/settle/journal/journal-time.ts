/**
 * The time by which a journal dates its records: how long processes have run with it. A wall clock may jump, and a
 * record that seems older than it is would be verified before its store could have lost it, or removed before its day
 * is over (docs/decisions/a-journal-counts-its-own-time.md).
 */
import type { Clock } from "../../values/time.ts";

/**
 * @param lastMs when the newest record was written; the time goes on from there, because nothing else tells how long
 *   ago that was. Undefined: the journal has no record, and begins with the wall clock's time.
 * @returns the present in whole milliseconds. It never goes back, not even over a restart, and never advances by more
 *   than has passed.
 */
export function journalTime(clock: Pick<Clock, "monotonicMs" | "wallMs">, lastMs: number | undefined): () => number {
  const startMs = (lastMs ?? clock.wallMs()) - clock.monotonicMs();
  return () => Math.floor(startMs + clock.monotonicMs());
}
