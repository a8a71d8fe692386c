/**
 * Stage admit: may this request run, and who pays? One round trip to the store in the common case (ARCHITECTURE.md
 * promise 5). Reads facts, never content.
 */
import {
  type AdmitAsk,
  type AdmitRefusalCause,
  type AdmitRefused,
  type Admitted,
  isKeyRefusal,
} from "../store/admission.ts";
import { type Store, StoreError } from "../store/contract.ts";
import type { BudgetSpan } from "../store/limits/limits.ts";
import type { KeyView } from "../store/records.ts";
import type { Catalog, Group } from "../values/catalog.ts";
import { isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { Idempotency, IdempotentRequest, KeptRequest } from "../values/idempotency.ts";
import type { AccountTag, WellFormedKey } from "../values/key.ts";
import type { Envelope } from "../values/members/envelope.ts";
import { nanoUsd } from "../values/money.ts";
import type { Multiplier } from "../values/price.ts";
import { PROTOCOLS, type Protocol } from "../values/protocol.ts";
import { printRequestId, type RequestId } from "../values/request-id.ts";
import { growthOf, openLimit } from "./growth.ts";
import { readKeyView, refuseKey, storeRefusal } from "./key-view.ts";
import { limitHeaders } from "./limit-headers.ts";
import type { Permit } from "./permit.ts";
import type { SeenKeys } from "./seen-keys.ts";
import { affordableLimit, measure, type OfferedTerms, type Quote, type Terms } from "./terms.ts";

export interface AdmitInput {
  readonly requestId: RequestId;
  readonly protocol: Protocol;
  /** The key as accept read it. */
  readonly key: WellFormedKey;
  /** The client's address as bits (`store/limits/address-bits.ts`). */
  readonly address: string;
  /** The body's facts, or its fault: a bad key is answered before a bad body. */
  readonly facts: Envelope | Refusal;
  /** How long the hold must live: the request's deadline and a minute. */
  readonly holdTtlMs: number;
  /** What has been read of the key for this very request, if anything has: it is not read again for a body's fault. */
  readonly view?: KeyView | undefined;
  /** Undefined when the client sent no key, or the operator has not switched it on. */
  readonly idempotency: Idempotency | undefined;
}

export interface AdmitParts {
  readonly store: Pick<Store, "admit" | "readKey">;
  readonly catalog: () => Catalog;
  /** Resolves when the charges that this process has not settled yet for an account are; undefined when there are none. */
  readonly unsettled: (tag: AccountTag) => Promise<void> | undefined;
  /**
   * Called for an admission whose outcome is unknown: the store may still carry it out later, so its hold must be
   * voided once the store answers again (docs/failure-model.md invariant 34).
   */
  readonly abandon: (
    requestId: RequestId,
    tag: AccountTag,
    inputTokens: number,
    idempotency: IdempotentRequest | undefined,
  ) => void;
  /** Milliseconds since the epoch, for the limit headers of a refusal. */
  readonly wallMs: () => number;
  readonly seenKeys: SeenKeys;
  /** Called for each request that a budget has refused. */
  readonly onBudgetMet?: ((tag: AccountTag, refused: AdmitRefused) => void) | undefined;
}

/** Refusals that the account's own last request may have caused (promise 5). */
const WORTH_ANOTHER_TRY: ReadonlySet<AdmitRefusalCause> = new Set<AdmitRefusalCause>([
  "insufficient_balance",
  "quota_used",
  "key_budget",
  "account_budget",
  "concurrency",
  "idempotency_in_progress",
]);

/** Decides a request. A refusal has no side effects but the place in the request bucket that the contract names. */
export async function admit(input: AdmitInput, parts: AdmitParts): Promise<Permit | Refusal> {
  const bad = parts.seenKeys.bad(input.key.hash);
  if (bad) return refusal(bad);
  try {
    return await decide(input, parts);
  } catch (error) {
    return storeRefusal(error);
  }
}

async function decide(input: AdmitInput, parts: AdmitParts): Promise<Permit | Refusal> {
  const catalog = parts.catalog();
  const { facts } = input;
  if (isRefusal(facts)) return onlyKey(input, parts, () => facts);
  const model = catalog.models.get(facts.model);
  if (!model) return onlyKey(input, parts, (group) => refusal("unknown_model", { model: facts.model, group }));
  const quote = measure(facts, model, catalog);
  if (isRefusal(quote)) return onlyKey(input, parts, (group) => ({ ...quote, facts: { ...quote.facts, group } }));
  const answer = await ask(input, quote, parts);
  if (answer.outcome === "admitted") {
    parts.seenKeys.noteGood(input.key.hash);
    return permitOf(input, facts, quote, answer, catalog);
  }
  if (isKeyRefusal(answer.cause)) return refuseKey(answer.cause, input.key, parts.seenKeys);
  parts.seenKeys.noteGood(input.key.hash);
  if (answer.span !== undefined) parts.onBudgetMet?.(input.key.tag, answer);
  return refusedBy(answer, facts.model, catalog, limitHeaders(input.protocol, answer.limits, parts.wallMs()));
}

/** The refusal of a request that fails anyway: a bad key comes first, then the other fault. */
async function onlyKey(input: AdmitInput, parts: AdmitParts, otherwise: (group: string) => Refusal): Promise<Refusal> {
  const view = input.view ?? (await readKeyView(input.key, input.address, parts));
  return isRefusal(view) ? view : otherwise(view.key.group);
}

/** Asks the store, and once more when the refusal may be the echo of this account's last request. */
async function ask(input: AdmitInput, { terms, groups }: Quote, parts: AdmitParts): Promise<Admitted | AdmitRefused> {
  const question: AdmitAsk = {
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
    idempotency: input.idempotency && { key: input.idempotency.key, fingerprint: input.idempotency.fingerprint },
  };
  const answer = await sureAdmit(question, parts);
  if (answer.outcome === "admitted" || !WORTH_ANOTHER_TRY.has(answer.cause)) return answer;
  const pending = parts.unsettled(input.key.tag);
  if (!pending) return answer;
  await pending;
  // Only a refusal for concurrency comes after the request bucket has been charged.
  return sureAdmit({ ...question, again: answer.cause === "concurrency" }, parts);
}

/** Asks; a store that gives no answer may still act on the question, so what it may have held is given up. */
async function sureAdmit(question: AdmitAsk, parts: AdmitParts): Promise<Admitted | AdmitRefused> {
  try {
    return await parts.store.admit(question);
  } catch (error) {
    // A store that was not asked, or that waits for its operator, holds nothing.
    const isHeld = !(error instanceof StoreError && (error.outcome === "unsent" || error.kind === "older"));
    if (isHeld) parts.abandon(question.requestId, question.tag, question.inputTokens, question.idempotency);
    throw error;
  }
}

function permitOf(
  input: AdmitInput,
  facts: Envelope,
  { terms, groups }: Quote,
  answer: Admitted,
  catalog: Catalog,
): Permit {
  const group = catalog.groups.get(answer.group) as Group;
  const offered = groups.find((one) => one.group === answer.group) as OfferedTerms;
  const { inputEstimate } = offered;
  const { holdFull, inputTokens } = answer.dear ? offered.dear : offered;
  const partial = !answer.unmetered && answer.hold < holdFull;
  const paid = { ...terms, inputTokens, inputEstimate };
  const affordable = partial
    ? Math.min(terms.outputLimit, affordableLimit(paid, group.multiplier, answer.hold))
    : terms.outputLimit;
  const field = facts.limit?.field ?? (PROTOCOLS[input.protocol].limitFields[0] as string);
  const short = affordable < terms.outputLimit;
  // What no member of the body limits cannot be lowered, but where funds are short.
  const own = facts.limit?.implied ? affordable : facts.limit?.value;
  const openEnded = facts.stream && facts.limit === undefined && !short;
  // Where the dearest is held whole, neither need the hold grow nor does its input say what room the context leaves.
  const whole = answer.dear === true && !partial;
  const room = openEnded ? openLimit(whole ? { ...paid, inputTokens: offered.inputTokens } : paid) : affordable;
  const limitMost = openEnded ? Math.min(room, fundedLimit(paid, group.multiplier, answer)) : affordable;
  const lowered = short || limitMost < room || (own !== undefined && affordable < own);
  // A budget that is not held beside the limit must fit in it.
  const thinkingMost = facts.limit?.implied ? undefined : terms.thinkingBeside || limitMost;
  const lessThinking = thinkingMost !== undefined && facts.thinkingBudget > thinkingMost;
  const clamped = [
    ...(lowered ? [`${field}=${limitMost}`] : []),
    ...(lessThinking ? [`${facts.budgetParam}=${thinkingMost}`] : []),
  ];
  return {
    requestId: input.requestId,
    tag: input.key.tag,
    accountId: answer.accountId,
    keyId: answer.keyId,
    group,
    model: terms.model,
    terms: { ...terms, inputTokens: offered.inputTokens, inputEstimate },
    tokensTaken: terms.inputTokens,
    hold: answer.hold,
    heldDear: answer.dear === true,
    entitlement: answer.entitlement,
    counted: answer.counted,
    unmetered: answer.unmetered,
    storeTimeMs: answer.storeTimeMs,
    catalogVersion: catalog.version,
    // What is sent is what is held: also where the client named no limit, or one above what the model can give.
    outputLimit: lowered || facts.limit === undefined ? limitMost : undefined,
    outputMost: limitMost + terms.thinkingBeside,
    thinkingMost,
    openEnded,
    growth: openEnded && !answer.unmetered && !whole ? growthOf(paid, group.multiplier) : undefined,
    clamped: clamped.length > 0 ? clamped.join(", ") : undefined,
    limits: answer.limits,
    idempotency: input.idempotency && keptRequest(input.idempotency, answer.storeTimeMs, input.holdTtlMs),
  };
}

/**
 * What all that the payer has free can pay for: an upstream that is asked for more may think past it unseen. What runs beside
 * it may free more, or take it first; the hold is extended as far as there is something when it is needed.
 */
function fundedLimit(paid: Terms, multiplier: Multiplier, { unmetered, hold, free }: Admitted): number {
  if (unmetered || free === undefined) return Number.MAX_SAFE_INTEGER;
  return Math.max(paid.outputLimit, affordableLimit(paid, multiplier, nanoUsd(hold + free)));
}

/** The key is remembered from admission on, and at the least for as long as the request may run. */
function keptRequest(
  { key, fingerprint, streamed, keepMs }: Idempotency,
  storeTimeMs: number,
  holdTtlMs: number,
): KeptRequest {
  return { key, fingerprint, streamed, untilMs: storeTimeMs + Math.max(keepMs, holdTtlMs) };
}

const MS_PER_S = 1_000;

function refusedBy(
  answer: AdmitRefused,
  model: string,
  catalog: Catalog,
  headers: Readonly<Record<string, string>>,
): Refusal {
  const { cause, group, first } = answer;
  const retryAfterS = answer.retryAfterMs === undefined ? undefined : Math.ceil(answer.retryAfterMs / MS_PER_S);
  const param = first === undefined ? undefined : "Idempotency-Key";
  const said = { ...headers, ...budgetHeaders(answer) };
  return refusal(cause, { model, group, param, detail: detailOf(answer, catalog) }, { retryAfterS, headers: said });
}

function keyHolder(cause: AdmitRefusalCause, first: string): string {
  if (cause === "idempotency_key") return `Request ${first} used this key with another path or body.`;
  return `The request that has the key is ${first}.`;
}

/** When a budget begins anew, to the second. */
const resetTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

/** No `retry-after`: nobody waits for a month. */
function budgetHeaders({ resetsAtMs }: AdmitRefused): Readonly<Record<string, string>> {
  return resetsAtMs === undefined ? {} : { "x-tollgate-budget-reset": resetTime(resetsAtMs) };
}

const BUDGET_WORDS: Readonly<Record<BudgetSpan, string>> = {
  day: "daily budget",
  week: "weekly budget",
  month: "monthly budget",
  total: "total budget",
};

function budgetDetail({ cause, span, resetsAtMs }: AdmitRefused): string {
  const whose = cause === "key_budget" ? "key's" : "account's";
  const left = `What is left of the ${whose} ${BUDGET_WORDS[span ?? "total"]} does not cover the least that this request can cost`;
  return resetsAtMs === undefined ? `${left}.` : `${left}; it begins anew at ${resetTime(resetsAtMs)}.`;
}

/** A limit in words: the key's own, where that is what refuses, or its group's. */
function limitDetail(ofKey: number | undefined, ofGroup: number | undefined, what: string): string {
  return `The limit${ofKey === undefined ? "" : " of this key"} is ${ofKey ?? ofGroup ?? 0} ${what}.`;
}

function detailOf(answer: AdmitRefused, catalog: Catalog): string | undefined {
  const { cause, group: groupName, first, limitOfKey } = answer;
  // A client that lost the answer finds what it cost in the ledger, under the first request's id.
  if (first !== undefined) return keyHolder(cause, printRequestId(first));
  const group = groupName === undefined ? undefined : catalog.groups.get(groupName);
  if (cause === "not_in_plan") return "The model exists, but not in the plan of this account.";
  if (cause === "group_mismatch") return "The key's group does not serve this model.";
  if (cause === "no_entitlement") return "No time card of this group that includes the model is running.";
  if (cause === "quota_used") return "The running time card does not have enough quota left for this request.";
  if (cause === "insufficient_balance") return "The balance does not cover the least that this request can cost.";
  if (cause === "model_not_allowed") return "The key may use other models only.";
  if (cause === "key_budget" || cause === "account_budget") return budgetDetail(answer);
  if (cause === "requests") return limitDetail(limitOfKey, group?.limits.requestsPerMinute, "requests per minute");
  if (cause === "tokens") return limitDetail(limitOfKey, group?.limits.tokensPerMinute, "tokens per minute");
  if (cause === "concurrency") return limitDetail(limitOfKey, group?.limits.concurrency, "requests at once");
  return undefined;
}
