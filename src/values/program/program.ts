/**
 * What the program is made of: the sources in a checkout, or a bundle that `npm run build` made of them
 * (docs/decisions/one-file-of-code-is-the-program.md).
 */
import manifest from "../../../package.json" with { type: "json" };

/**
 * Which build it is: the commit that it was made of, or a digest of its code. Written in front of a bundle's code by
 * build/bundle.ts; a checkout has no such name.
 */
declare const TOLLGATE_BUILD: string;

export const IS_BUNDLE = typeof TOLLGATE_BUILD !== "undefined";

/** What this program is, as `--version`, the log's first line and `tollgate_build_info` say. */
export const BUILD = { version: manifest.version, build: IS_BUNDLE ? TOLLGATE_BUILD : "checkout" };

/** How a person runs a command of it. */
export const COMMAND = IS_BUNDLE ? "tollgate" : "npx --no-install tollgate";
