/** What admission fixes for a request and settlement charges by. A reload in between does not change it. */
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
  /** Input tokens that admission took from the token bucket; the same figure for every group. */
  readonly tokensTaken: number;
  readonly terms: {
    /** The input, at most and typically, including what the rules of the paying group add to it. */
    readonly inputTokens: number;
    readonly inputEstimate: number;
    readonly choices: number;
    /** The tier that the client asked for. */
    readonly tier: string | undefined;
    /** Price names of the hosted tools that the request offered. */
    readonly tools: readonly string[];
    /** The client's protocol. */
    readonly client?: Protocol | undefined;
    /** Price names of the extras that were asked for; each is charged once. */
    readonly options?: readonly string[] | undefined;
  };
  readonly hold: NanoUsd;
  /**
   * Whether the account got a worst-case hold because its charges repeatedly exceeded its holds and funds; the ledger
   * line says so.
   */
  readonly heldWorstCase?: boolean;
  /**
   * The most output tokens that the upstream may write for each choice: the limit that it is sent, plus thinking that
   * comes on top.
   */
  readonly outputMost: number;
  readonly entitlement: string | undefined;
  /** What the request is counted in besides its group's limits (Admitted.counted). */
  readonly counted?: string | undefined;
  readonly unmetered: boolean;
  readonly storeTimeMs: number;
  readonly catalogVersion: string;
  /** The idempotency key of the request, and how long its charge is remembered under that key. */
  readonly idempotency?: KeptRequest | undefined;
}
