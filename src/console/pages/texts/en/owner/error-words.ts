/** Empty: the gateway's own error messages are in English, and the page shows those. */
import type { Cause } from "../../../../../values/errors.ts";

/** What an error means, and what to do. */
export const errorWords: Partial<Readonly<Record<Cause, readonly [means: string, remedy: string]>>> = {};
