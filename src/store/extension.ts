/** What a running stream asks of a store when its hold runs low, and what the store answers. */
import type { AccountTag } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";

/**
 * The hold is raised to an amount, not by one. Repeating the ask after an unknown outcome finds the hold at that amount
 * and changes nothing.
 */
export interface ExtendAsk {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  /** The amount to hold. A hold that is as large, or larger, stays as it is. */
  readonly target: NanoUsd;
}

export type ExtendAnswer =
  /**
   * What is held now. It is less than the target when no more was free (ARCHITECTURE.md promise 1); the hold then has
   * all that was free.
   */
  | { readonly outcome: "held"; readonly hold: NanoUsd }
  /** This request has no hold any more: the hold expired, was settled, or was lost with the store's data. */
  | { readonly outcome: "gone" };
