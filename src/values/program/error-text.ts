/** What is said of anything that was thrown. */

/** For an operator's eyes: one line, mostly. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The system's or fetch's code of a failure, as ECONNREFUSED, which fetch hides in `cause`; a message may hold an address. */
export function codeOfFailure(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, cause } = error as Error & { readonly code?: unknown };
  return typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? code : codeOfFailure(cause);
}

/** For the log where a defect is possible: with the stack, if there is one. */
export function errorStack(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
