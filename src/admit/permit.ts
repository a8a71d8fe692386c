/** What admission gives to the rest of the path: who pays, how much at most, and at which prices. */
import type { LimitStates } from "../store/admission.ts";
import type { ChargeTerms } from "../store/charge-terms.ts";
import type { Growth } from "./growth.ts";
import type { Terms } from "./terms.ts";

/**
 * Everything about the money is pinned here: a reload in the middle of a request changes nothing (docs/failure-model.md
 * row G1).
 */
export interface Permit extends ChargeTerms {
  readonly accountId: string;
  /** With the input as the rules of the group that pays make it. */
  readonly terms: Terms;
  readonly heldDear: boolean;
  /** The output limit to send upstream; undefined: the client's own is kept. */
  readonly outputLimit: number | undefined;
  /** Tokens of thinking of each choice that may be asked for; undefined: the body has no limits. */
  readonly thinkingMost: number | undefined;
  /** A stream whose client named no output limit, and for which funds have not set one. */
  readonly openEnded: boolean;
  /** How its hold may grow; undefined where nothing is held, or all that the request can cost. */
  readonly growth: Growth | undefined;
  /**
   * `field=value` when the client's limit or its thinking budget was lowered: to what the model can give, or to what funds
   * cover. Both are joined by a comma.
   */
  readonly clamped: string | undefined;
  readonly limits: LimitStates;
}
