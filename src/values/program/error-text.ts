/** Texts for anything that was thrown. */

/** For operators: usually one line. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The parts of a failure that are safe to report; its message may contain an address. */
interface CodedFailure {
  readonly code?: unknown;
  readonly name?: unknown;
  readonly message?: unknown;
  readonly syscall?: unknown;
  readonly cause?: unknown;
}

/** The first error with a code in the chain of causes, or the last one: fetch hides the system's error in `cause`. */
export function codedFailure(error: unknown): CodedFailure {
  const failure = (error ?? {}) as CodedFailure;
  return typeof failure.code === "string" || failure.cause === undefined ? failure : codedFailure(failure.cause);
}

/** The code of a failure from the system or fetch, such as ECONNREFUSED; else the name of the error. */
export function codeOfFailure(error: unknown): string {
  const { code, name } = codedFailure(error);
  if (typeof code === "string") return code;
  return typeof name === "string" ? name : "unknown failure";
}

/** For the log if a defect is possible: with the stack, if there is one. */
export function errorStack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
