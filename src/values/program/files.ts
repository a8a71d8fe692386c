/**
 * Texts that the sources read from files next to them. A bundle has no such files, so it includes them, in a script
 * that is not read at the start (docs/decisions/one-file-of-code-is-the-program.md).
 */

/** Written in front of that script by build/bundle.ts; not defined in a checkout. */
declare const TOLLGATE_FILES: Readonly<Record<string, string>>;

/** By their paths below `src/`; undefined in a checkout. */
export const BUNDLED_FILES = typeof TOLLGATE_FILES === "undefined" ? undefined : TOLLGATE_FILES;
