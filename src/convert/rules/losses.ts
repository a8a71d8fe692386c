/**
 * What a translation leaves out though it means something to the client (ARCHITECTURE.md promise 9). Names come from a
 * closed set, so that they can be metric labels; the exact place goes into the refusal of a strict request.
 */
import type { HubRequest } from "../hub.ts";
import { refuse } from "./read.ts";

export class Losses {
  readonly #names = new Set<string>();
  readonly #strict: boolean;

  /** @param strict whether any loss ends the translation (`x-tollgate-strict: 1`). */
  constructor(strict: boolean) {
    this.#strict = strict;
  }

  /**
   * Records that a member was left out.
   * @param name its name without indices.
   * @param param its exact path, where that differs.
   */
  drop(name: string, param = name): void {
    if (this.#strict) {
      refuse("untranslatable", param, `${param} cannot be carried to this model, and nothing may be dropped.`);
    }
    this.#names.add(name);
  }

  /** Goes through what only the client's protocol knows: refuses, drops, or forgets. */
  leaveOut(rest: HubRequest["rest"]): void {
    for (const field of rest) {
      if (field.weight === "required") {
        refuse("unsupported_parameter", field.param, `${field.param} does not exist for this model's server.`);
      }
      if (field.weight === "meaning") this.drop(field.param);
    }
  }

  /** The names, in the order in which they were dropped. */
  get names(): readonly string[] {
    return [...this.#names];
  }
}

/* The header that tells a client what of its request did not reach the model's server (ARCHITECTURE.md promise 9). */

/** The most names in the header, and the most characters of one. */
const NAMES_MAX = 20;
const NAME_CHARS_MAX = 64;

/** The header that declares the losses. Names may hold words of a client's body, so only harmless characters pass. */
export function translationHeader(dropped: readonly string[]): string {
  if (dropped.length === 0) return "exact";
  const names = dropped.slice(0, NAMES_MAX).map((name) => name.slice(0, NAME_CHARS_MAX).replace(/[^\w.[\]-]/g, "_"));
  const more = dropped.length > NAMES_MAX ? `,+${dropped.length - NAMES_MAX}` : "";
  return `lossy; dropped=${names.join(",")}${more}`;
}
