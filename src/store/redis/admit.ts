/**
 * Admission on Redis: turns the ask into arguments of `lua/admit.lua`, and its reply into an answer of the contract.
 */

import { nanoUsd } from "../../values/money.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { AdmitAsk, AdmitRefusalCause, AdmitRefused, Admitted, GroupTerms } from "../admission.ts";
import type { ExtendAnswer, ExtendAsk } from "../extension.ts";
import { admittedOf, bucketOfTexts, type HoldRecord } from "../hold-record.ts";
import { budgetOfLetter } from "../limits/budgets.ts";
import { ACCOUNT_CONCURRENCY_MAX } from "../settlement.ts";
import { escaped, listText } from "./connection/encode.ts";
import type { Runner } from "./connection/runner.ts";
import { accountKey, expiriesKey, holdsKey, idempotencyKey, settledKey } from "./keys.ts";
import type { Scripts } from "./scripts.ts";

export async function admit(runner: Runner, scripts: Scripts, ask: AdmitAsk): Promise<Admitted | AdmitRefused> {
  const { tag, requestId, idempotency } = ask;
  const keys = [accountKey(tag), holdsKey(tag), expiriesKey(tag), settledKey(tag, requestId)];
  if (idempotency) keys.push(idempotencyKey(tag, idempotency.key));
  const reply = (await runner.script(scripts.admit, keys, [askText(ask)])) as string | readonly string[];
  // If admitted, the reply is only the hold's record, because each element of a reply costs time to parse.
  if (typeof reply === "string") return admittedOf(tag, JSON.parse(reply) as HoldRecord);
  const [, cause, group = "", wait = "", ...states] = reply;
  const first = states[6] ? (states[6] as RequestId) : undefined;
  const [, , , , , , , letter = "", own = "", ends = "", budget = "", keyId = ""] = states;
  const span = budgetOfLetter(letter)?.span;
  return {
    outcome: "refused",
    cause: cause as AdmitRefusalCause,
    group: group === "" ? undefined : group,
    retryAfterMs: wait === "" ? undefined : Number(wait),
    limits: { requests: bucketOfTexts(states.slice(0, 3)), tokens: bucketOfTexts(states.slice(3, 6)) },
    ...(first === undefined ? {} : { first }),
    ...(span === undefined ? {} : { span, budget: nanoUsd(BigInt(budget)), keyId }),
    ...(ends === "" ? {} : { resetsAtMs: Number(ends) }),
    ...limitIn(own),
  };
}

/** Whose limit refuses, when it is not the group's. */
function limitIn(own: string): Pick<AdmitRefused, "limitOfKey" | "limitOfAccount"> {
  if (own === "account") return { limitOfAccount: ACCOUNT_CONCURRENCY_MAX };
  return own === "" ? {} : { limitOfKey: Number(own) };
}

/**
 * The texts in the order in which the script reads them, as one JSON text: an argument of a command costs 0.12 us, a
 * text in a list 0.02 us. Texts that `checkAdmit` has checked need no escaping.
 */
function askText(ask: AdmitAsk): string {
  const { requestId, keyHash, plans, groups, inputTokens, holdTtlMs, idempotency, model, address } = ask;
  const again = ask.again ? "1" : "0";
  const numbers = `"${inputTokens}","${holdTtlMs}","${again}","${ACCOUNT_CONCURRENCY_MAX}"`;
  const last = `"${idempotency?.fingerprint ?? ""}","${escaped(model)}","${address}"`;
  return `["${requestId}","${keyHash}",${JSON.stringify(plans)},[${groups.map(termsText).join(",")}],${numbers},${last}]`;
}

/** Texts only: a number would be converted to a double on its way. */
function termsText(terms: GroupTerms): string {
  return listText([
    escaped(terms.group),
    terms.kind,
    `${terms.holdFull}`,
    `${terms.holdMin}`,
    `${terms.requestsPerMinute ?? ""}`,
    `${terms.tokensPerMinute ?? ""}`,
    `${terms.concurrency}`,
    terms.perKey ? "1" : "0",
    `${terms.worstCase?.holdFull ?? ""}`,
    `${terms.worstCase?.holdMin ?? ""}`,
    terms.fallback ? "1" : "",
  ]);
}

/*
 * Extending a hold on Redis: turns the ask into arguments of `lua/extend.lua`, and its reply into an answer of the
 * contract.
 */

export async function extend(runner: Runner, scripts: Scripts, ask: ExtendAsk): Promise<ExtendAnswer> {
  const { tag } = ask;
  const keys = [accountKey(tag), holdsKey(tag), expiriesKey(tag)];
  const reply = await runner.script(scripts.extend, keys, [ask.requestId, `${ask.target}`]);
  const [outcome, hold = "0"] = reply as readonly string[];
  if (outcome === "held") return { outcome, hold: nanoUsd(BigInt(hold)) };
  if (outcome === "gone") return { outcome };
  throw new TypeError(`extend.lua replied ${outcome}`);
}
