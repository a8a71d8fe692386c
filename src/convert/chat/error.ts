/**
 * Errors in the form of chat clients (docs/errors.md, docs/translation-rules.md rule 47). The responses protocol shares
 * it.
 */
import type { ErrorAnswer } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";

/** Statuses whose `code` is the identifier instead of the cause, because clients match on it. */
const CODE_IS_IDENTIFIER: ReadonlySet<number> = new Set([401, 404, 429]);

/** The `error` object of an answer that is not a stream. */
function errorObject(answer: ErrorAnswer): JsonObject {
  return {
    message: answer.message,
    type: errorType(answer),
    param: answer.param,
    code: errorCode(answer),
    cause: answer.cause,
    remedy: answer.remedy,
  };
}

/** The body of an answer that is not 2xx. */
export function renderError(answer: ErrorAnswer, requestId: string): string {
  return JSON.stringify({ error: { ...errorObject(answer), request_id: requestId } });
}

/** The data of the chunk that ends a failed stream; no `[DONE]` follows (ARCHITECTURE.md promise 8). */
export function renderStreamFailure(answer: ErrorAnswer, code: string, requestId: string): string {
  return JSON.stringify({ error: streamError(answer, code, requestId) });
}

/** The `error` object of a stream that has begun. */
export function streamError(answer: ErrorAnswer, code: string, requestId: string): JsonObject {
  const { message, cause, remedy } = answer;
  const type = streamErrorType(answer, code);
  return { message, type, param: null, code, cause, remedy, request_id: requestId };
}

/** A stream that has begun cannot have another status, so the type alone says who is at fault. */
function streamErrorType({ cause }: ErrorAnswer, code: string): string {
  if (cause === "upstream_rejected") return "invalid_request_error";
  return code === "rate_limit_exceeded" ? "rate_limit_error" : "server_error";
}

function errorType(answer: ErrorAnswer): string {
  // Codex recognizes only this name for failures of a server.
  return answer.identifier === "api_error" || answer.identifier === "overloaded_error"
    ? "server_error"
    : answer.identifier;
}

function errorCode(answer: ErrorAnswer): string {
  if (answer.identifier === "overloaded_error") return "server_is_overloaded";
  if (answer.upstreamCode !== undefined) return answer.upstreamCode;
  return CODE_IS_IDENTIFIER.has(answer.status) ? answer.identifier : answer.cause;
}
