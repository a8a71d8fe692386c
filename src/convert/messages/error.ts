/** Errors in the form of messages clients (docs/errors.md, docs/translation-rules.md rule 47). */
import type { Cause, ErrorAnswer } from "../../values/errors.ts";
import { tooLongSentence } from "../../values/upstream-refusals.ts";

const TOO_LONG = "context_length_exceeded";

/** Refusals because of missing funds. Only this protocol has a type for them; the others use that of the status. */
const FUNDS_CAUSES: ReadonlySet<Cause> = new Set<Cause>([
  "no_entitlement",
  "quota_used",
  "insufficient_balance",
  "key_budget",
  "account_budget",
]);

/** The body of an answer that is not 2xx. */
export function renderError(answer: ErrorAnswer, requestId: string): string {
  const { cause, remedy, details } = answer;
  const type = FUNDS_CAUSES.has(cause) ? "billing_error" : answer.identifier;
  return JSON.stringify({
    type: "error",
    error: { type, message: message(answer), ...(details && { details }), cause, remedy },
    request_id: requestId,
  });
}

/**
 * The data of the `event: error` that ends a failed stream (ARCHITECTURE.md promise 8). Its type is `overloaded_error`,
 * which clients retry; `api_error` in the middle of a stream is fatal to some. If the request is at fault, it is
 * `invalid_request_error`, which clients do not retry. A client compacts a conversation that is too long.
 * @param code the code of the upstream's own failure.
 */
export function renderStreamFailure(answer: ErrorAnswer, requestId: string, code?: string): string {
  const { cause, remedy } = answer;
  const isTooLong = code === TOO_LONG;
  const type = isTooLong || cause === "upstream_rejected" ? "invalid_request_error" : "overloaded_error";
  const text = isTooLong ? tooLongSentence(answer.message) : answer.message;
  return JSON.stringify({
    type: "error",
    error: { type, message: text, cause, remedy },
    request_id: requestId,
  });
}

/**
 * The message. Messages errors have no `param`, so the sentence begins with the member at fault, in the spelling of the
 * protocol's own server (`messages.0.content.1`); a 404 contains its code (rule 47).
 */
function message(answer: ErrorAnswer): string {
  if (answer.upstreamCode === TOO_LONG) return tooLongSentence(answer.message);
  const named = answer.identifier === "model_not_found" ? `model_not_found: ${answer.message}` : answer.message;
  if (answer.param === null || answer.cause === "upstream_rejected") return named;
  return `${answer.param.replace(/\[(\d+)\]/g, ".$1")}: ${named}`;
}
