/** What every endpoint does with a refusal before it is rendered. */
import type { FailedKeys } from "./accept/failed-keys.ts";
import { type Cause, type Refusal, refusal } from "./values/errors.ts";

/** Sends a refusal as the answer. */
export type Refuse = (refused: Refusal) => void;

/** Failures that a guesser of keys would cause; a missing key is only a misconfigured client. */
const BAD_KEY: ReadonlySet<Cause> = new Set<Cause>(["unknown_key", "revoked_key", "malformed_key", "conflicting_keys"]);

/** An address with too many bad keys gets 429 in place of its 401s (order of refusal, row 3). */
export function refuseBadKey(
  refused: Refusal,
  request: { readonly clientAddress: string | undefined },
  failedKeys: FailedKeys,
): Refusal {
  if (!BAD_KEY.has(refused.cause)) return refused;
  const retryAfterS = failedKeys.failed(request.clientAddress);
  return retryAfterS === undefined ? refused : refusal("bad_keys", {}, { retryAfterS });
}
