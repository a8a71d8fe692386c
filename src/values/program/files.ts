/**
 * Texts that the sources read from files beside them. A bundle has no such files, so they are put into it, into the script that a
 * start does not read (docs/decisions/one-file-of-code-is-the-program.md).
 */

/** Written in front of that script by build/bundle.ts; a checkout has no such name. */
declare const TOLLGATE_FILES: Readonly<Record<string, string>>;

/** By their paths below `src/`; undefined in a checkout. */
export const BUNDLED_FILES = typeof TOLLGATE_FILES === "undefined" ? undefined : TOLLGATE_FILES;
