/** What admission gives to the rest of the path: who pays, how much at most, and at which prices. */
import type { Admitted } from "../store/admission.ts";
import type { Group, Model } from "../values/catalog.ts";
import type { KeptRequest } from "../values/idempotency.ts";
import type { AccountTag } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";
import type { Growth } from "./growth.ts";
import type { Terms } from "./terms.ts";

/**
 * Everything about the money is pinned here: a reload in the middle of a request changes nothing (docs/failure-model.md
 * row G1).
 */
export interface Permit {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  readonly accountId: string;
  readonly keyId: string;
  readonly group: Group;
  readonly model: Model;
  /** With the input as the rules of the group that pays make it. */
  readonly terms: Terms;
  /** Input tokens that the token bucket was asked for, which is one figure for every group. */
  readonly tokensTaken: number;
  readonly hold: NanoUsd;
  /** Whether the account is held at the dearest, since its charges were above its holds again and again. */
  readonly heldDear: boolean;
  readonly entitlement: string | undefined;
  readonly unmetered: boolean;
  readonly storeTimeMs: number;
  readonly catalogVersion: string;
  /** The output limit to send upstream; undefined: the client's own is kept. */
  readonly outputLimit: number | undefined;
  /** The most output tokens of each choice that the upstream may write: the limit that it gets, and thinking beside it. */
  readonly outputMost: number;
  /** A stream whose client named no output limit, and for which funds have not set one. */
  readonly openEnded: boolean;
  /** How its hold may grow; undefined where nothing is held, or all that the request can cost. */
  readonly growth: Growth | undefined;
  /** `field=value` when the client's limit was lowered: to what the model can give, or to what funds cover. */
  readonly clamped: string | undefined;
  readonly limits: Admitted["limits"];
  /** The idempotency key that the request has, and until when its charge is remembered under it. */
  readonly idempotency: KeptRequest | undefined;
}
