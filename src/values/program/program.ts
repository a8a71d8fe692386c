/**
 * What the program runs from: the sources in a checkout, or a bundle that `npm run build` made from them
 * (docs/decisions/one-file-of-code-is-the-program.md).
 */
import manifest from "../../../package.json" with { type: "json" };

/**
 * Identifies the build: the commit from which it was made, or a digest of its code. Written in front of a bundle's code
 * by build/bundle.ts; not defined in a checkout.
 */
declare const TOLLGATE_BUILD: string;

export const IS_BUNDLE = typeof TOLLGATE_BUILD !== "undefined";

/** Version and build, as in `--version`, the log's first line and `tollgate_build_info`. */
export const BUILD = { version: manifest.version, build: IS_BUNDLE ? TOLLGATE_BUILD : "checkout" };

/** How a person runs a command of this program. */
export const COMMAND = IS_BUNDLE ? "tollgate" : "npx --no-install tollgate";
