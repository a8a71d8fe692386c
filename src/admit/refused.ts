/** What admission refuses, and the messages for it. */
import { type AdmitRefusalCause, type AdmitRefused, isKeyRefusal, type KeyRefusalCause } from "../store/admission.ts";
import { StoreError } from "../store/contract.ts";
import type { BudgetSpan } from "../store/limits/limits.ts";
import type { Catalog } from "../values/catalog.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { AccountTag, WellFormedKey } from "../values/key.ts";
import type { Envelope } from "../values/members/envelope.ts";
import type { Protocol } from "../values/protocol.ts";
import { printRequestId } from "../values/request-id.ts";
import { limitHeaders } from "./limit-headers.ts";
import type { SeenKeys } from "./seen-keys.ts";

/**
 * The refusal of a key. It is remembered only for unknown and revoked keys, because a suspended key may be resumed at
 * any time.
 */
export function refuseKey(cause: KeyRefusalCause, { hash }: Pick<WellFormedKey, "hash">, seenKeys: SeenKeys): Refusal {
  if (cause === "unknown_key" || cause === "revoked_key") seenKeys.noteBad(hash, cause);
  return refusal(cause);
}

/** A refusal of a good key's request with the key's group, which is irrelevant if the body names no model. */
export function withGroup(refused: Refusal, group: string): Refusal {
  return refused.facts.model === undefined ? refused : { ...refused, facts: { ...refused.facts, group } };
}

/** The refusal if the store gave no answer; any other error is rethrown. */
export function storeRefusal(error: unknown): Refusal {
  if (error instanceof StoreError) return refusal(error.kind === "older" ? "store_older" : "store_unavailable");
  throw error;
}

const MS_PER_S = 1_000;

/**
 * Turns a store's refusal into the client's. A refused key takes precedence over everything else. For a good key, the
 * answer says why its request is refused and how much of its limits is left.
 */
export function refusedBy(
  answer: AdmitRefused,
  { key, protocol }: { readonly key: WellFormedKey; readonly protocol: Protocol },
  { model, bodyBytes }: Pick<Envelope, "model" | "bodyBytes">,
  catalog: Catalog,
  { seenKeys, onBudgetMet, wallMs }: RefusingParts,
): Refusal {
  if (isKeyRefusal(answer.cause)) return refuseKey(answer.cause, key, seenKeys);
  seenKeys.noteGood(key.hash);
  seenKeys.noteLimited(key.hash, answer, bodyBytes);
  if (answer.span !== undefined) onBudgetMet?.(key.tag, answer);
  return refuseRequest(answer, model, catalog, limitHeaders(protocol, answer.limits, wallMs()));
}

/**
 * The refusal of a key that is known to be above its requests per minute. No part of a request can change it, so the
 * body need not be read. Undefined if the store must be asked.
 */
export function knownLimit(
  { hash }: Pick<WellFormedKey, "hash">,
  protocol: Protocol,
  catalog: Catalog,
  { seenKeys, wallMs }: Pick<RefusingParts, "seenKeys" | "wallMs">,
): Refusal | undefined {
  const answer = seenKeys.limited(hash);
  return answer && refuseRequest(answer, undefined, catalog, limitHeaders(protocol, answer.limits, wallMs()));
}

/** Why a good key's request is refused. @param limits the rate-limit headers. */
function refuseRequest(
  answer: AdmitRefused,
  model: string | undefined,
  catalog: Catalog,
  limits: Readonly<Record<string, string>>,
): Refusal {
  const { cause, group, first } = answer;
  const retryAfterS = answer.retryAfterMs === undefined ? undefined : Math.ceil(answer.retryAfterMs / MS_PER_S);
  const param = first === undefined ? undefined : "Idempotency-Key";
  const headers = { ...limits, ...budgetHeaders(answer) };
  return refusal(cause, { model, group, param, detail: detailOf(answer, catalog) }, { retryAfterS, headers });
}

export interface RefusingParts {
  readonly seenKeys: SeenKeys;
  /** Milliseconds since the epoch, for the limit headers. */
  readonly wallMs: () => number;
  /** Called for each request that a budget has refused. */
  readonly onBudgetMet?: ((tag: AccountTag, refused: AdmitRefused) => void) | undefined;
}

function keyHolder(cause: AdmitRefusalCause, first: string): string {
  if (cause === "idempotency_key") return `Request ${first} used this key with another path or body.`;
  return `The first request with this key is ${first}.`;
}

/** The time at which a budget resets, to the second. */
const resetTime = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

/** No `retry-after`, because no client waits for a month. */
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
  const left = `The rest of the ${whose} ${BUDGET_WORDS[span ?? "total"]} does not cover the least that this request can cost`;
  return resetsAtMs === undefined ? `${left}.` : `${left}; the budget resets at ${resetTime(resetsAtMs)}.`;
}

/** A limit in words: the key's own limit if it caused the refusal, otherwise its group's. */
function limitDetail(ofKey: number | undefined, ofGroup: number | undefined, one: string, when: string): string {
  const limit = ofKey ?? ofGroup ?? 0;
  return `The limit${ofKey === undefined ? "" : " of this key"} is ${limit} ${limit === 1 ? one : `${one}s`} ${when}.`;
}

function detailOf(answer: AdmitRefused, catalog: Catalog): string | undefined {
  const { cause, group: groupName, first, limitOfKey } = answer;
  // A client that lost the answer finds its cost in the ledger, under the first request's id.
  if (first !== undefined) return keyHolder(cause, printRequestId(first));
  const group = groupName === undefined ? undefined : catalog.groups.get(groupName);
  if (cause === "not_in_plan") return "The model exists, but not in the plan of this account.";
  if (cause === "group_mismatch") return "The key's group does not serve this model.";
  if (cause === "no_entitlement") return "No time card of this group that includes the model is running.";
  if (cause === "quota_used") return "The running time card does not have enough quota left for this request.";
  if (cause === "insufficient_balance") return "The balance does not cover the least that this request can cost.";
  if (cause === "model_not_allowed") return "The key may use other models only.";
  if (cause === "key_budget" || cause === "account_budget") return budgetDetail(answer);
  // A refusal from memory may be older than a reload that has removed the group or its limit.
  const requestsMax = group?.limits.requestsPerMinute ?? answer.limits.requests?.limit;
  if (cause === "requests") return limitDetail(limitOfKey, requestsMax, "request", "per minute");
  if (cause === "tokens") return limitDetail(limitOfKey, group?.limits.tokensPerMinute, "token", "per minute");
  if (answer.limitOfAccount !== undefined)
    return `The limit of an account is ${answer.limitOfAccount} requests at once.`;
  if (cause === "concurrency") return limitDetail(limitOfKey, group?.limits.concurrency, "request", "at once");
  return undefined;
}
