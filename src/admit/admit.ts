/**
 * Stage admit: decides whether a request may run, and who pays. Usually takes one round trip to the store
 * (ARCHITECTURE.md promise 5). Reads facts, never content.
 */
import type { AdmitAsk, AdmitRefusalCause, AdmitRefused, Admitted } from "../store/admission.ts";
import { type Store, StoreError } from "../store/contract.ts";
import type { KeyView } from "../store/records.ts";
import type { Catalog } from "../values/catalog.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { Idempotency, IdempotentRequest } from "../values/idempotency.ts";
import type { AccountTag, WellFormedKey } from "../values/key.ts";
import type { Envelope } from "../values/members/envelope.ts";
import type { Protocol } from "../values/protocol.ts";
import type { RequestId } from "../values/request-id.ts";
import { holdWhatIsSent, mayBeKept } from "./kept-reply.ts";
import { readKeyView } from "./key-view.ts";
import { type Permit, permitOf } from "./permit.ts";
import { type RefusingParts, refusedBy, storeRefusal, withGroup } from "./refused.ts";
import { measure, type Quote } from "./terms.ts";

export interface AdmitInput {
  readonly requestId: RequestId;
  readonly protocol: Protocol;
  /** The key as accept read it. */
  readonly key: WellFormedKey;
  /** The client's address as bits (`store/limits/address-bits.ts`). */
  readonly address: string;
  /** The body's facts, or its fault: a bad key is answered before a bad body. */
  readonly facts: Envelope | Refusal;
  /** How long the hold must live: the request's deadline plus a minute. */
  readonly holdTtlMs: number;
  /** The key as read earlier for this same request, if it was: a body's fault does not read it again. */
  readonly view?: KeyView | undefined;
  /** Undefined if the client sent no key, or if the operator has not enabled the feature. */
  readonly idempotency: Idempotency | undefined;
}

export interface AdmitParts extends RefusingParts {
  readonly store: Pick<Store, "admit" | "extend" | "readKey">;
  readonly catalog: () => Catalog;
  /** Resolves when this process has settled the account's pending charges; undefined if there are none. */
  readonly unsettled: (tag: AccountTag) => Promise<void> | undefined;
  /**
   * Called for an admission whose outcome is unknown. The store may still execute it later, so its hold must be voided
   * once the store answers again (docs/failure-model.md invariant 34).
   */
  readonly abandon: (
    requestId: RequestId,
    tag: AccountTag,
    inputTokens: number,
    idempotency: IdempotentRequest | undefined,
  ) => void;
}

/** Refusals that may be caused by the account's own previous request (promise 5). */
const WORTH_ANOTHER_TRY: ReadonlySet<AdmitRefusalCause> = new Set<AdmitRefusalCause>([
  "insufficient_balance",
  "quota_used",
  "key_budget",
  "account_budget",
  "concurrency",
  "idempotency_in_progress",
  // A key whose request failed is free again, for any body, once that request's settlement has released it.
  "idempotency_key",
]);

/**
 * Decides a request. A refusal has no side effect, except for the charge to the request bucket that the contract names.
 * One function from question to permit, because each additional await costs 0.3 us per request.
 */
export async function admit(input: AdmitInput, parts: AdmitParts): Promise<Permit | Refusal> {
  const bad = parts.seenKeys.bad(input.key.hash);
  if (bad) return refusal(bad);
  let asking: AdmitAsk | undefined;
  try {
    const catalog = parts.catalog();
    const { facts } = input;
    const quote = isRefusal(facts) ? facts : quoteOf(facts, catalog);
    if (isRefusal(facts) || isRefusal(quote)) return await refuseUnasked(input, quote as Refusal, parts);
    const question = questionOf(input, quote);
    asking = question;
    let answer = await parts.store.admit(question);
    asking = undefined;
    if (answer.outcome === "refused" && WORTH_ANOTHER_TRY.has(answer.cause)) {
      answer = await askAgain(question, answer, parts);
    }
    if (answer.outcome === "refused") return refusedBy(answer, input, facts, catalog, parts);
    parts.seenKeys.noteGood(input.key.hash);
    const permit = permitOf(input, facts, quote, answer, catalog);
    if (!permit.growth || !mayBeKept(facts, permit.model)) return permit;
    const held = await holdWhatIsSent(permit, answer, permit.growth, parts);
    return { ...permitOf(input, facts, quote, held, catalog), growth: undefined };
  } catch (error) {
    if (asking) giveUp(asking, error, parts);
    return storeRefusal(error);
  }
}

/** What the request would cost, or why it has no price here. */
function quoteOf(facts: Envelope, catalog: Catalog): Quote | Refusal {
  const model = catalog.models.get(facts.model);
  return model ? measure(facts, model, catalog) : refusal("unknown_model", { model: facts.model });
}

/** The refusal of a request that fails anyway. A bad key takes precedence over the other fault. */
async function refuseUnasked(input: AdmitInput, refused: Refusal, parts: AdmitParts): Promise<Refusal> {
  const view = input.view ?? (await readKeyView(input.key, input.address, parts));
  if (isRefusal(view)) return view;
  return withGroup(refused, view.key.group);
}

function questionOf(input: AdmitInput, { terms, groups }: Quote): AdmitAsk {
  return {
    requestId: input.requestId,
    tag: input.key.tag,
    keyHash: input.key.hash,
    model: terms.model.name,
    address: input.address,
    plans: terms.plans,
    groups,
    inputTokens: terms.inputTokens,
    holdTtlMs: input.holdTtlMs,
    again: false,
    fresh: true,
    idempotency: input.idempotency && { key: input.idempotency.key, fingerprint: input.idempotency.fingerprint },
  };
}

/** Asks the store once more if this account's own previous request may have caused the refusal. */
async function askAgain(
  question: AdmitAsk,
  refused: AdmitRefused,
  parts: AdmitParts,
): Promise<Admitted | AdmitRefused> {
  const pending = parts.unsettled(question.tag);
  if (!pending) return refused;
  await pending;
  // Only a refusal for concurrency happens after the request bucket has been charged.
  const once = { ...question, again: refused.cause === "concurrency", fresh: false };
  try {
    return await parts.store.admit(once);
  } catch (error) {
    giveUp(once, error, parts);
    throw error;
  }
}

/** If the store does not answer, it may still act on the question. What it may have held is then voided. */
function giveUp(question: AdmitAsk, error: unknown, parts: AdmitParts): void {
  // If the store was not asked, or if it waits for its operator, it holds nothing.
  const isHeld = !(error instanceof StoreError && (error.outcome === "unsent" || error.kind === "older"));
  if (isHeld) parts.abandon(question.requestId, question.tag, question.inputTokens, question.idempotency);
}
