/**
 * Errors as responses clients read them: whole answers like chat's, streams in events of their own (ARCHITECTURE.md
 * promise 8).
 */
import type { ErrorAnswer } from "../../values/errors.ts";
import type { JsonObject } from "../../values/json-object.ts";

export { renderError } from "../chat/error.ts";

/**
 * The data of the two events that end a failed stream: `error`, which LangChain and the plain SDK raise, then
 * `response.failed` with the stream's own response id, which Codex classifies.
 * @param sequenceNumber the next number of the stream.
 */
export function renderStreamFailure(
  answer: ErrorAnswer,
  code: string,
  response: JsonObject,
  sequenceNumber: number,
): { error: string; failed: string } {
  const { message, cause, remedy } = answer;
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
