/** The texts that each language must have: those of the English one. */
import type { en } from "./en.ts";

export type Texts = typeof en;
