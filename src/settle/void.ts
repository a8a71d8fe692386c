/** Settlements that charge nobody and name no cost: the hold goes back. */

import type { ChargeTerms } from "../store/charge-terms.ts";
import type { SettleAsk } from "../store/settlement.ts";
import type { IdempotentRequest } from "../values/idempotency.ts";
import type { AccountTag } from "../values/key.ts";
import { ZERO } from "../values/money.ts";
import type { RequestId } from "../values/request-id.ts";

/** The settlement of a request that never reached an upstream: its hold is given back. */
export function voidOf(terms: ChargeTerms): SettleAsk {
  return {
    requestId: terms.requestId,
    tag: terms.tag,
    admittedAtMs: terms.storeTimeMs,
    group: terms.group.name,
    kind: terms.group.kind,
    entitlement: terms.entitlement,
    keyId: terms.keyId,
    perKey: terms.group.limits.perKey,
    model: terms.model.name,
    amount: ZERO,
    absorbed: ZERO,
    absorbedCause: undefined,
    upstream: undefined,
    tokensTaken: terms.tokensTaken,
    tokensUsed: 0,
    tokensPerMinute: terms.group.limits.tokensPerMinute,
    voided: true,
    memo: "{}",
    idempotency: terms.idempotency,
  };
}

/**
 * Gives up an admission whose outcome is unknown: should the store have carried it out, or still do so, it holds nothing.
 * @param nowMs the time at which the answer failed to come; the store's own is not known.
 */
export function abandoned(
  requestId: RequestId,
  tag: AccountTag,
  inputTokens: number,
  nowMs: number,
  idempotency?: IdempotentRequest | undefined,
): SettleAsk {
  return {
    requestId,
    tag,
    admittedAtMs: nowMs,
    group: "",
    kind: "pay_per_use",
    entitlement: undefined,
    keyId: "",
    perKey: false,
    model: "",
    amount: ZERO,
    absorbed: ZERO,
    absorbedCause: undefined,
    upstream: undefined,
    tokensTaken: inputTokens,
    tokensUsed: 0,
    tokensPerMinute: undefined,
    voided: true,
    memo: "{}",
    idempotency: idempotency && { ...idempotency, streamed: false, untilMs: nowMs },
  };
}
