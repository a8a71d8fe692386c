/** What a running stream asks of a store when its hold runs low, and what the store answers. */
import type { AccountTag } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";

/**
 * The hold is raised to an amount and not by one: the same ask again, after an outcome that nobody knows, finds the hold
 * where it left it and changes nothing.
 */
export interface ExtendAsk {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  /** What the hold shall be. One that is there already, or more, stays as it is. */
  readonly target: NanoUsd;
}

export type ExtendAnswer =
  /**
   * What is held now: less than the target when no more was free (ARCHITECTURE.md promise 1), and then all that was
   * free.
   */
  | { readonly outcome: "held"; readonly hold: NanoUsd }
  /** No hold of this request is left: it expired, was settled, or a store that lost data forgot it. */
  | { readonly outcome: "gone" };
