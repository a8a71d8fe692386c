/**
 * Finds the key in the headers (docs/failure-model.md rows 23, 24, 26 to 28 and 32). The text of a key stays here; the
 * rest of the gateway sees only a tag and a hash.
 */
import { type Refusal, refusal } from "../values/errors.ts";
import { readKey, type WellFormedKey } from "../values/key.ts";
import type { Clock } from "../values/time.ts";
import type { RequestHeaders } from "./headers.ts";

/** `"noise"`: has the form of a key but a wrong checksum. It is an unknown key that needs no lookup in the store. */
export type PresentedKey = WellFormedKey | "noise";

/** Reads the text of a key, as `readKey` does. */
export type KeyReader = (text: string) => PresentedKey | undefined;

const NO_KEY = refusal("missing_key");
const WITHOUT_BEARER = refusal("missing_key", { detail: "The authorization header is not Bearer, a space and a key." });

/**
 * Reads the key from `Authorization: Bearer` and `x-api-key`.
 * @returns the key, or a refusal: `missing_key`, `malformed_key`, `conflicting_keys`.
 */
export function keyOf(headers: RequestHeaders, read: KeyReader = readKey): PresentedKey | Refusal {
  if (headers.repeats("authorization")) return conflict("The authorization header appears more than once.");
  if (headers.repeats("x-api-key")) return conflict("The x-api-key header appears more than once.");
  const authorization = headers.get("authorization");
  const ofScheme = bearerText(authorization);
  const bearer = ofScheme || undefined;
  const plain = headers.get("x-api-key") || undefined;
  if (bearer === undefined && plain === undefined) {
    return authorization && ofScheme === undefined ? WITHOUT_BEARER : NO_KEY;
  }
  const ofBearer = bearer === undefined ? undefined : read(bearer);
  const ofPlain = plain === undefined ? undefined : read(plain);
  if (ofBearer !== undefined && ofPlain !== undefined && bearer !== plain) {
    return conflict("The authorization header and the x-api-key header carry different keys.");
  }
  return ofBearer ?? ofPlain ?? refusal("malformed_key");
}

const REMEMBERED_KEYS_MAX = 1_000;
const REMEMBERED_MS = 10_000;

/**
 * Reads keys, and remembers recent ones by their text: 0.2 us instead of 1.6. The texts are secrets, but running
 * requests have them in memory as well. They are dropped after 10 seconds by a timer. Each maps only to its own tag and
 * digest.
 */
export function rememberingReader(clock: Pick<Clock, "after">): KeyReader {
  let known = new Map<string, WellFormedKey>();
  let isTimed = false;
  return (text) => {
    const seen = known.get(text);
    if (seen !== undefined) return seen;
    const key = readKey(text);
    if (key === undefined || key === "noise") return key;
    if (known.size >= REMEMBERED_KEYS_MAX) known = new Map();
    known.set(text, key);
    if (!isTimed) {
      isTimed = true;
      clock.after(REMEMBERED_MS, () => {
        known = new Map();
        isTimed = false;
      });
    }
    return key;
  };
}

/** Whether a header for keys is present. If so, the request was meant for the API, even if its path was not. */
export function carriesKey(headers: RequestHeaders): boolean {
  return headers.has("x-api-key") || bearerText(headers.get("authorization")) !== undefined;
}

/**
 * The text after `Bearer` and one space. Only the case of the scheme is free (RFC 9110 section 11.1): a second space or
 * anything after the key stays in the text, which is then malformed. Node's parser has removed blanks around the whole
 * value, which are not part of it (RFC 9110 section 5.5).
 * @returns undefined if there is no such header, or if it has another scheme.
 */
function bearerText(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  const scheme = value.slice(0, 7).toLowerCase();
  return scheme === "bearer " || scheme === "bearer" ? value.slice(7) : undefined;
}

function conflict(detail: string): Refusal {
  return refusal("conflicting_keys", { detail });
}
