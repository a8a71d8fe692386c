/**
 * What the program is made of: the sources in a checkout, or a bundle that `npm run build` made of them. A bundle is one
 * file of code, so what the sources read from files beside them is put into it, here and nowhere else
 * (docs/decisions/one-file-of-code-is-the-program.md).
 */
import manifest from "../../../package.json" with { type: "json" };

interface Bundle {
  /** Which build it is: the commit that it was made of, or a digest of its code. */
  readonly build: string;
  /** Texts that the code reads, by their paths below `src/`. */
  readonly files: Readonly<Record<string, string>>;
}

/** Written in front of a bundle's code by build/bundle.ts; a checkout has no such name. */
declare const TOLLGATE_BUNDLE: Bundle;

/** The bundle that this code is in; undefined in a checkout. */
export const BUNDLE: Bundle | undefined = typeof TOLLGATE_BUNDLE === "undefined" ? undefined : TOLLGATE_BUNDLE;

/** What this program is, as `--version`, the log's first line and `tollgate_build_info` say. */
export const BUILD = { version: manifest.version, build: BUNDLE?.build ?? "checkout" };

/** How a person runs a command of it. */
export const COMMAND = BUNDLE ? "tollgate" : "npx --no-install tollgate";
