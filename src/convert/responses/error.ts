/**
 * Errors in the form of responses clients: those of whole answers like chat's, those of streams in separate events
 * (ARCHITECTURE.md promise 8).
 */
import type { ErrorAnswer } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";
import { NOTICE_CODES } from "../../values/upstream-refusals.ts";
import { streamError } from "../chat/error.ts";

export { renderError } from "../chat/error.ts";

/** Codes at which Codex ends the turn; it retries all others. */
const FINAL_CODES: ReadonlySet<string> = new Set([
  "context_length_exceeded",
  "invalid_prompt",
  "insufficient_quota",
  ...NOTICE_CODES,
]);

/**
 * The code with which known clients retry if that can help, and do not if it cannot (docs/errors.md, *When a stream
 * fails*). An overload has no code of its own: clients retry `server_is_overloaded` as an answer, but inside a stream
 * it ends Codex's turn.
 */
function streamCode({ cause }: ErrorAnswer, code: string): string {
  if (cause === "upstream_rejected") return FINAL_CODES.has(code) ? code : "invalid_prompt";
  return code === "server_is_overloaded" ? "server_error" : code;
}

/**
 * The data of the two events that end a failed stream: `error`, which LangChain and the plain SDK raise, then
 * `response.failed` with the stream's own response id, which Codex classifies. The members of `error` are at its top, as
 * OpenAI documents it, and in an object, as its servers write it: OpenAI's SDK for Python raises only the latter.
 * @param at the response so far, the next number of the stream, and the value of `x-request-id`.
 */
export function renderStreamFailure(
  answer: ErrorAnswer,
  faultCode: string,
  at: { readonly response: JsonObject; readonly sequenceNumber: number; readonly requestId: string },
): { error: string; failed: string } {
  const { response, sequenceNumber, requestId } = at;
  const { message, cause, remedy } = answer;
  const code = streamCode(answer, faultCode);
  return {
    error: JSON.stringify({
      type: "error",
      code,
      message,
      param: null,
      sequence_number: sequenceNumber,
      cause,
      remedy,
      error: streamError(answer, code, requestId),
    }),
    failed: JSON.stringify({
      type: "response.failed",
      sequence_number: sequenceNumber + 1,
      response: { ...response, status: "failed", error: { code, message }, incomplete_details: null, usage: null },
    }),
  };
}
