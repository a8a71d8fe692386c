/**
 * Finds the key in the headers (docs/failure-model.md rows 23, 24, 26 to 28 and 32). The text
 * ends here: what leaves is a tag and a hash.
 */
import { type Refusal, refusal } from "../values/errors.ts";
import { looksLikeKey, readKey, type WellFormedKey } from "../values/key.ts";
import type { RequestHeaders } from "./headers.ts";

/** `"noise"` has the written form and a wrong checksum: an unknown key that costs the store nothing. */
export type PresentedKey = WellFormedKey | "noise";

/**
 * Reads the key from `Authorization: Bearer` and `x-api-key`.
 * @returns the key, or a refusal: `missing_key`, `malformed_key`, `conflicting_keys`.
 */
export function keyOf(headers: RequestHeaders): PresentedKey | Refusal {
  const authorization = headers.all("authorization");
  const apiKey = headers.all("x-api-key");
  if (authorization.length > 1) return conflict("The authorization header appears more than once.");
  if (apiKey.length > 1) return conflict("The x-api-key header appears more than once.");
  const bearer = bearerText(authorization[0]) || undefined;
  const plain = apiKey[0] || undefined;
  if (bearer === undefined && plain === undefined) return refusal("missing_key");
  const ofBearer = bearer !== undefined && looksLikeKey(bearer) ? bearer : undefined;
  const ofPlain = plain !== undefined && looksLikeKey(plain) ? plain : undefined;
  if (ofBearer !== undefined && ofPlain !== undefined && ofBearer !== ofPlain) {
    return conflict("The authorization header and the x-api-key header carry different keys.");
  }
  const text = ofBearer ?? ofPlain;
  const key = text === undefined ? undefined : readKey(text);
  return key ?? refusal("malformed_key");
}

/** Whether a request has anything in a header for keys. If so it was meant for the API, even if its path was not. */
export function carriesKey(headers: RequestHeaders): boolean {
  return headers.has("x-api-key") || bearerText(headers.get("authorization")) !== undefined;
}

/**
 * What follows `Bearer` and one space. Only the scheme's case is free (RFC 9110 section 11.1); a second space or
 * anything after the key stays in the text and fails the form. Blanks around the whole value are not part of it
 * (RFC 9110 section 5.5), Node's parser has removed them.
 * @returns undefined when there is no such header or another scheme.
 */
function bearerText(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const scheme = value.slice(0, 7).toLowerCase();
  return scheme === "bearer " || scheme === "bearer" ? value.slice(7) : undefined;
}

function conflict(detail: string): Refusal {
  return refusal("conflicting_keys", { detail });
}
