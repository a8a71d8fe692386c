/** What a permit says that a bill needs. */
import type { Group, Model } from "../values/catalog.ts";
import type { KeptRequest } from "../values/idempotency.ts";
import type { AccountTag } from "../values/key.ts";
import type { NanoUsd } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";
import type { AskedOptions } from "./asked-options.ts";

/** The permit's part that settlement needs; admission's permit has these members and more. */
export interface ChargeTerms {
  readonly requestId: RequestId;
  readonly tag: AccountTag;
  readonly keyId: string;
  readonly group: Group;
  readonly model: Model;
  /** Input tokens that admission took from the token bucket. */
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
  } & AskedOptions;
  readonly hold: NanoUsd;
  /** Whether the account is held at the dearest; the line says so. */
  readonly heldDear?: boolean;
  /** The most output tokens of each choice that the upstream may write: the limit that it gets, and thinking beside it. */
  readonly outputMost: number;
  readonly entitlement: string | undefined;
  readonly unmetered: boolean;
  readonly storeTimeMs: number;
  readonly catalogVersion: string;
  readonly idempotency?: KeptRequest | undefined;
}
