/**
 * Finds API keys inside texts that are passed on: header values, cookies, request targets. Clients put keys where the
 * gateway does not read them (`api-key`, `?key=`, Basic credentials, a WebSocket's subprotocols), and the next reader
 * of the text must not get the key.
 */
import { readKey } from "./key.ts";

const KEY = /sk-[0-9A-Za-z]{48}/g;
const ALPHANUMERIC = /[0-9A-Za-z]/;
const BASE64_RUN = /[0-9A-Za-z+/_-]+/g;
/** The 51 characters of a key are 68 characters of base64. */
const BASE64_KEY_LENGTH = 68;
const BASE64_GROUP = 4;
/** `sk-` in base64, at each of the three offsets in a group. Texts without any of them need not be decoded. */
const BASE64_BEGIN = /c2st|NrL|zay/;
/** Maximum of nested percent-encodings that are decoded. */
const PERCENT_ROUNDS_MAX = 3;

/**
 * Whether a text contains a key: literally, in base64 or base64url, and any of these percent-encoded up to three times.
 *
 * A key with a correct checksum also counts inside other text; one with a wrong checksum only if it is a separate word,
 * so that `task-` and a digest are not mistaken for one.
 */
export function containsKey(text: string): boolean {
  return percentReadings(text).some((reading) => containsPlainKey(reading) || containsBase64Key(reading));
}

/** Typed text, safe for a log: `***` if it contains a key. */
export function withoutKey(text: string): string {
  return containsKey(text) ? "***" : text;
}

function containsPlainKey(text: string): boolean {
  for (const { 0: key, index } of text.matchAll(KEY)) {
    const glued = ALPHANUMERIC.test(text.charAt(index - 1)) || ALPHANUMERIC.test(text.charAt(index + key.length));
    if (!glued || readKey(key) !== "noise") return true;
  }
  return false;
}

function containsBase64Key(text: string): boolean {
  for (const [run] of text.matchAll(BASE64_RUN)) {
    if (run.length < BASE64_KEY_LENGTH || !BASE64_BEGIN.test(run)) continue;
    // Text in the same alphabet may precede the encoded text, so its groups may begin at any offset.
    for (let from = 0; from < BASE64_GROUP; from += 1) {
      if (containsPlainKey(Buffer.from(run.slice(from), "base64").toString("latin1"))) return true;
    }
  }
  return false;
}

/** A text as it is, and after each round of percent-decoding; `%XX` becomes that byte. */
export function percentReadings(text: string): readonly [string, ...string[]] {
  const readings: [string, ...string[]] = [text];
  for (let last = text; readings.length <= PERCENT_ROUNDS_MAX && last.includes("%"); readings.push(last)) {
    last = last.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
  }
  return readings;
}
