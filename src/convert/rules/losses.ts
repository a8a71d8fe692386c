/**
 * The members that a translation leaves out although they mean something to the client (ARCHITECTURE.md promise 9).
 * Their names come from a closed set, so they can be metric labels; the refusal of a strict request has the exact path.
 */
import type { Protocol } from "../../values/protocol.ts";
import type { HubRequest } from "../hub.ts";
import { refuse } from "./read.ts";

export class Losses {
  readonly #names = new Set<string>();
  readonly #unlisted = new Set<string>();
  readonly #ignored = new Set<string>();
  readonly #strict: boolean;

  /** @param strict whether any loss refuses the request (`x-tollgate-strict: 1`). */
  constructor(strict: boolean) {
    this.#strict = strict;
  }

  /**
   * Records that a meaningful member was left out.
   * @param name its name without indices.
   * @param param its exact path, if that differs.
   */
  drop(name: string, param = name): void {
    this.#refuseIfStrict(param);
    this.#names.add(name);
  }

  /** Records that a hint was left out. The client cannot notice it, so a strict request is not refused. */
  ignore(name: string): void {
    this.#ignored.add(name);
  }

  /**
   * Handles the members that the decoder did not read: refuses them, records them, or skips those that the target can
   * carry.
   */
  leaveOut(rest: HubRequest["rest"], target: Protocol): void {
    for (const { param, weight, carriedBy, isUnlisted } of rest) {
      if (weight === "required") {
        refuse("unsupported_parameter", param, `${param} does not exist for this model's server.`);
      }
      if (carriedBy?.includes(target)) continue;
      if (weight === "hint") this.ignore(param);
      else if (isUnlisted) this.#dropUnlisted(param);
      else this.drop(param);
    }
  }

  #dropUnlisted(param: string): void {
    this.#refuseIfStrict(param);
    this.#unlisted.add(param);
  }

  #refuseIfStrict(param: string): void {
    if (!this.#strict) return;
    refuse("untranslatable", param, `${param} cannot be carried to this model, and nothing may be dropped.`);
  }

  /** The names, in the order in which they were dropped. */
  get names(): readonly string[] {
    return [...this.#names];
  }

  /** The names that no protocol lists. The client chose them, so they are never metric labels. */
  get unlisted(): readonly string[] {
    return [...this.#unlisted];
  }

  /** The names of hints that were left out. */
  get ignored(): readonly string[] {
    return [...this.#ignored];
  }
}

/* The header that names the parts of a request that did not reach the model's server (ARCHITECTURE.md promise 9). */

/** The most names in the header, and the most characters of each. */
const NAMES_MAX = 20;
const NAME_CHARS_MAX = 64;

/**
 * The header that declares the losses: `exact` or `lossy; dropped=a,b`, then `; ignored=c` for hints. Names may contain
 * text from a client's body, so only safe characters pass.
 */
export function translationHeader(dropped: readonly string[], ignored: readonly string[] = []): string {
  const loss = dropped.length === 0 ? "exact" : `lossy; dropped=${listed(dropped)}`;
  return ignored.length === 0 ? loss : `${loss}; ignored=${listed(ignored)}`;
}

function listed(all: readonly string[]): string {
  const names = all.slice(0, NAMES_MAX).map((name) => name.slice(0, NAME_CHARS_MAX).replace(/[^\w.[\]-]/g, "_"));
  return names.join(",") + (all.length > NAMES_MAX ? `,+${all.length - NAMES_MAX}` : "");
}
