/** What is said of anything that was thrown. */

/** For an operator's eyes: one line, mostly. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What can be told of a failure whose message may hold an address. */
interface CodedFailure {
  readonly code?: unknown;
  readonly name?: unknown;
  readonly syscall?: unknown;
  readonly cause?: unknown;
}

/** The first error with a code among those that caused each other, or the last one: fetch hides the system's in `cause`. */
export function codedFailure(error: unknown): CodedFailure {
  const failure = (error ?? {}) as CodedFailure;
  return typeof failure.code === "string" || failure.cause === undefined ? failure : codedFailure(failure.cause);
}

/** The system's or fetch's code of a failure, as ECONNREFUSED, else the name of the error. */
export function codeOfFailure(error: unknown): string {
  const { code, name } = codedFailure(error);
  if (typeof code === "string") return code;
  return typeof name === "string" ? name : "unknown failure";
}

/** For the log where a defect is possible: with the stack, if there is one. */
export function errorStack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
