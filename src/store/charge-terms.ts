/** What admission pins of a request, and settlement charges it by: nothing that is reloaded meanwhile changes it. */
import type { Group, Model } from "../values/catalog.ts";
import type { KeptRequest } from "../values/idempotency.ts";
import type { AccountTag } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { Protocol } from "../values/protocol.ts";
import type { RequestId } from "../values/request-id.ts";

/** The part of a permit that settlement needs. */
export interface ChargeTerms {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  readonly keyId: string;
  readonly group: Group;
  readonly model: Model;
  /** Input tokens that admission took from the token bucket: one figure for every group. */
  readonly tokensTaken: number;
  readonly terms: {
    /** The input at most and as a rule, with what the rules of the group that pays add to it. */
    readonly inputTokens: number;
    readonly inputEstimate: number;
    readonly choices: number;
    /** The tier that the client asks for. */
    readonly tier: string | undefined;
    /** Price names of the hosted tools that the request has offered. */
    readonly tools: readonly string[];
    /** The client's protocol. */
    readonly client?: Protocol | undefined;
    /** Price names of the extras asked for: each is charged once. */
    readonly options?: readonly string[] | undefined;
  };
  readonly hold: NanoUsd;
  /** Whether the account is held at the dearest, since its charges went beyond its holds and funds again and again; the line says so. */
  readonly heldDear?: boolean;
  /** The most output tokens of each choice that the upstream may write: the limit that it gets, and thinking beside it. */
  readonly outputMost: number;
  readonly entitlement: string | undefined;
  /** What the request counts in beside its group's limits (Admitted.counted). */
  readonly counted?: string | undefined;
  readonly unmetered: boolean;
  readonly storeTimeMs: number;
  readonly catalogVersion: string;
  /** The idempotency key that the request has, and until when its charge is remembered under it. */
  readonly idempotency?: KeptRequest | undefined;
}
