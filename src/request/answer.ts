/** From a refusal to the bytes and headers that a client of a protocol gets: the same way for every stage. */
import { renderError } from "../convert/error.ts";
import { answerOf, type ErrorAnswer, type Refusal } from "../values/errors.ts";
import type { Protocol } from "../values/protocol.ts";

interface RenderedRefusal {
  readonly answer: ErrorAnswer;
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

/** Messages clients know an overloaded server by its own status (docs/translation-rules.md rule 47). */
const MESSAGES_OVERLOADED_STATUS = 529;

const CHALLENGE = 'Bearer realm="tollgate"';

/**
 * Renders a refusal.
 * @param requestId as printed in `x-request-id`.
 * @param unavailableStatus the setting `upstream_unavailable_status`.
 */
export function render(
  refused: Refusal,
  protocol: Protocol,
  requestId: string,
  unavailableStatus: 403 | 503,
): RenderedRefusal {
  const answer = answerOf(refused, unavailableStatus);
  const headers: Record<string, string> = {
    "content-type": "application/json",
    "x-tollgate-origin": answer.origin,
    ...answer.headers,
  };
  // RFC 9110 section 11.6.1: a 401 names a scheme; `x-api-key` has none.
  if (answer.status === 401) headers["www-authenticate"] = CHALLENGE;
  if (answer.retryAfterS !== undefined) headers["retry-after"] = String(answer.retryAfterS);
  if (answer.shouldRetry !== undefined) headers["x-should-retry"] = String(answer.shouldRetry);
  if (answer.close) headers.connection = "close";
  const upstreamOverload = answer.origin === "upstream" && answer.status === 503;
  return {
    answer,
    status: upstreamOverload && protocol === "messages" ? MESSAGES_OVERLOADED_STATUS : answer.status,
    headers,
    body: Buffer.from(renderError(protocol, answer, requestId)),
  };
}
