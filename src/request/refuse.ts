/** What every endpoint does about keys: which are looked up, and how a bad one is refused. */
import type { FailedKeys } from "../accept/failed-keys.ts";
import type { AcceptedRequest } from "../accept/listener.ts";
import type { SeenKeys } from "../admit/seen-keys.ts";
import { renderError } from "../convert/error.ts";
import { answerOf, type Cause, type ErrorAnswer, isRefusal, type Refusal, refusal } from "../values/errors.ts";
import type { WellFormedKey } from "../values/key.ts";
import type { Protocol } from "../values/protocol.ts";

/** Failures that guessing keys would cause; a missing key is only a misconfigured client. */
const GUESSES: ReadonlySet<Cause> = new Set<Cause>(["unknown_key", "malformed_key", "conflicting_keys"]);

/** A key that was good once is not a guess: some program at the address still has it, and others there do not. */
const ONCE_GOOD: ReadonlySet<Cause> = new Set<Cause>(["revoked_key", "suspended", "expired_key"]);

/** Lookups are limited per second, so the next second has new ones. */
const LOOK_UP_WAIT_S = 1;

/**
 * The key as accept read it, or why it is not looked up. If an address sends a flood of bad keys, others at the address
 * are not affected: their keys have been good before, and only other keys compete for the lookups of the address.
 */
export function presentedKey(
  { key, clientAddress }: Pick<AcceptedRequest, "key" | "clientAddress">,
  { failedKeys, admit }: { readonly failedKeys: FailedKeys; readonly admit: { readonly seenKeys: SeenKeys } },
): WellFormedKey | Refusal {
  if (isRefusal(key)) return key;
  if (key === "noise") return refusal("unknown_key");
  const bad = admit.seenKeys.bad(key.hash);
  if (bad) return refusal(bad);
  if (admit.seenKeys.wasGood(key.hash) || failedKeys.mayLookUp(clientAddress)) return key;
  const detail = "This key was not looked up, because too many other keys from this address were bad.";
  return refusal("bad_keys", { detail }, { retryAfterS: LOOK_UP_WAIT_S });
}

/**
 * An address with too many bad keys gets 429 instead of its 401s (docs/failure-model.md row 30). The key stays bad, so
 * SDKs must not wait and send it again.
 */
export function refuseBadKey(
  refused: Refusal,
  request: { readonly clientAddress: string | undefined },
  failedKeys: FailedKeys,
): Refusal {
  const retryAfterS = waitOf(refused.cause, request.clientAddress, failedKeys);
  return retryAfterS === undefined ? refused : refusal("bad_keys", {}, { retryAfterS, shouldRetry: false });
}

function waitOf(cause: Cause, address: string | undefined, failedKeys: FailedKeys): number | undefined {
  if (GUESSES.has(cause)) return failedKeys.failed(address);
  return ONCE_GOOD.has(cause) ? failedKeys.waitS(address) : undefined;
}

/* Turns a refusal into the bytes and headers that a client of a protocol gets, in the same way for every stage. */

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
 * @param requestId as in `x-request-id`.
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
