/** What is said of anything that was thrown. */

/** For an operator's eyes: one line, mostly. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** For the log where a defect is possible: with the stack, if there is one. */
export function errorStack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
