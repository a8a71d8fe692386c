/** What admission passes on: who pays, how much at most, and at which prices. */
import type { Admitted, LimitStates } from "../store/admission.ts";
import type { ChargeTerms } from "../store/charge-terms.ts";
import type { Catalog, Group } from "../values/catalog.ts";
import type { Idempotency, KeptRequest } from "../values/idempotency.ts";
import type { WellFormedKey } from "../values/key.ts";
import type { Envelope } from "../values/members/envelope.ts";
import type { Protocol } from "../values/protocol.ts";
import type { RequestId } from "../values/request-id.ts";
import { type OfferedTerms, outputOf, type PermittedOutput, type Quote, type Terms } from "./terms.ts";

/**
 * Everything about the money is fixed here: a reload during a request changes nothing (docs/failure-model.md row G1).
 */
export interface Permit extends ChargeTerms, PermittedOutput {
  readonly accountId: string;
  /** With the input as the rules of the paying group make it. */
  readonly terms: Terms;
  readonly heldWorstCase: boolean;
  readonly limits: LimitStates;
}

/** The admitted request. */
interface AdmittedRequest {
  readonly requestId: RequestId;
  readonly protocol: Protocol;
  readonly key: Pick<WellFormedKey, "tag">;
  readonly holdTtlMs: number;
  readonly idempotency: Idempotency | undefined;
}

/** The permit for what the store has admitted. */
export function permitOf(
  { requestId, protocol, key, holdTtlMs, idempotency }: AdmittedRequest,
  facts: Envelope,
  { terms, groups }: Quote,
  answer: Admitted,
  catalog: Catalog,
): Permit {
  const group = catalog.groups.get(answer.group) as Group;
  const offered = groups.find((one) => one.group === answer.group) as OfferedTerms;
  const { inputTokens, inputEstimate } = offered;
  const output = outputOf(protocol, facts, terms, offered, answer);
  const isMost = inputTokens === terms.inputTokens && inputEstimate === terms.inputEstimate;
  return {
    requestId,
    tag: key.tag,
    accountId: answer.accountId,
    keyId: answer.keyId,
    group,
    model: terms.model,
    terms: isMost ? terms : { ...terms, inputTokens, inputEstimate },
    tokensTaken: terms.inputTokens,
    hold: answer.hold,
    heldWorstCase: answer.worstCase === true,
    entitlement: answer.entitlement,
    counted: answer.counted,
    unmetered: answer.unmetered,
    storeTimeMs: answer.storeTimeMs,
    catalogVersion: catalog.version,
    limits: answer.limits,
    idempotency: idempotency && keptRequest(idempotency, answer.storeTimeMs, holdTtlMs),
    // Member by member, because spreads take 0.29 us and this takes 0.06.
    outputLimit: output.outputLimit,
    outputMost: output.outputMost,
    thinkingMost: output.thinkingMost,
    openEnded: output.openEnded,
    growth: output.growth,
    clamped: output.clamped,
  };
}

/** The idempotency key is remembered from admission on, at least for as long as the request may run. */
function keptRequest(
  { key, fingerprint, streamed, keepMs }: Idempotency,
  storeTimeMs: number,
  holdTtlMs: number,
): KeptRequest {
  return { key, fingerprint, streamed, untilMs: storeTimeMs + Math.max(keepMs, holdTtlMs) };
}
