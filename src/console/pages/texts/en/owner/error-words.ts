/** The gateway words its errors in English itself: the page shows these words, so there is nothing to say here. */
import type { Cause } from "../../../../../values/errors.ts";

/** What an error means, and what to do. */
export const errorWords: Partial<Readonly<Record<Cause, readonly [means: string, remedy: string]>>> = {};
