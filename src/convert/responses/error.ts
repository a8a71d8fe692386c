/**
 * Errors as responses clients read them: whole answers like chat's, streams in events of their own (ARCHITECTURE.md
 * promise 8).
 */
import type { ErrorAnswer } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";

export { renderError } from "../chat/error.ts";

/** Codes at which Codex ends the turn; it tries again at every other. */
const FINAL_CODES: ReadonlySet<string> = new Set(["context_length_exceeded", "invalid_prompt", "insufficient_quota"]);

/**
 * The code by which known clients try again where that can help, and do not where it cannot (docs/errors.md, *When a stream
 * fails*). An overload has none: `server_is_overloaded`, which they retry as an answer, ends Codex's turn inside a stream.
 */
function streamCode({ cause }: ErrorAnswer, code: string): string {
  if (cause === "upstream_rejected") return FINAL_CODES.has(code) ? code : "invalid_prompt";
  return code === "server_is_overloaded" ? "server_error" : code;
}

/**
 * The data of the two events that end a failed stream: `error`, which LangChain and the plain SDK raise, then
 * `response.failed` with the stream's own response id, which Codex classifies.
 * @param sequenceNumber the next number of the stream.
 */
export function renderStreamFailure(
  answer: ErrorAnswer,
  faultCode: string,
  response: JsonObject,
  sequenceNumber: number,
): { error: string; failed: string } {
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
    }),
    failed: JSON.stringify({
      type: "response.failed",
      sequence_number: sequenceNumber + 1,
      response: { ...response, status: "failed", error: { code, message }, incomplete_details: null, usage: null },
    }),
  };
}
