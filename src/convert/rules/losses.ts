/**
 * What a translation leaves out though it means something to the client (ARCHITECTURE.md promise 9). Names come from a
 * closed set, so that they can be metric labels; the exact place goes into the refusal of a strict request.
 */
import type { Protocol } from "../../values/protocol.ts";
import type { HubRequest } from "../hub.ts";
import { refuse } from "./read.ts";

export class Losses {
  readonly #names = new Set<string>();
  readonly #unlisted = new Set<string>();
  readonly #ignored = new Set<string>();
  readonly #strict: boolean;

  /** @param strict whether any loss ends the translation (`x-tollgate-strict: 1`). */
  constructor(strict: boolean) {
    this.#strict = strict;
  }

  /**
   * Records that a member that means something was left out.
   * @param name its name without indices.
   * @param param its exact path, where that differs.
   */
  drop(name: string, param = name): void {
    this.#refuseIfStrict(param);
    this.#names.add(name);
  }

  /** Records that a hint was left out: the client cannot see that it is missing, so a strict request goes on. */
  ignore(name: string): void {
    this.#ignored.add(name);
  }

  /** Goes through what nobody read: refuses it, records it, or leaves it to the target that has a word for it. */
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

  /** The names that no protocol lists: they are the client's own, and no metric's label. */
  get unlisted(): readonly string[] {
    return [...this.#unlisted];
  }

  /** The names of hints that were left out. */
  get ignored(): readonly string[] {
    return [...this.#ignored];
  }
}

/* The header that tells a client what of its request did not reach the model's server (ARCHITECTURE.md promise 9). */

/** The most names in the header, and the most characters of one. */
const NAMES_MAX = 20;
const NAME_CHARS_MAX = 64;

/**
 * The header that declares the losses: `exact` or `lossy; dropped=a,b`, then `; ignored=c` for what was left out without
 * an effect. Names may hold words of a client's body, so only harmless characters pass.
 */
export function translationHeader(dropped: readonly string[], ignored: readonly string[] = []): string {
  const loss = dropped.length === 0 ? "exact" : `lossy; dropped=${listed(dropped)}`;
  return ignored.length === 0 ? loss : `${loss}; ignored=${listed(ignored)}`;
}

function listed(all: readonly string[]): string {
  const names = all.slice(0, NAMES_MAX).map((name) => name.slice(0, NAME_CHARS_MAX).replace(/[^\w.[\]-]/g, "_"));
  return names.join(",") + (all.length > NAMES_MAX ? `,+${all.length - NAMES_MAX}` : "");
}
