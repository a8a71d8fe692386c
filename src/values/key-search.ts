/**
 * Finds API keys inside texts that are passed on: header values, cookies, request targets. Clients put keys where no
 * gateway reads them (`api-key`, `?key=`, Basic credentials, a WebSocket's subprotocols), and the next reader of the
 * text must not get the key.
 */
import { readKey } from "./key.ts";

const KEY = /sk-[0-9A-Za-z]{48}/g;
const ALPHANUMERIC = /[0-9A-Za-z]/;
const BASE64_RUN = /[0-9A-Za-z+/_-]+/g;
/** The 51 characters of a key are 68 of base64. */
const BASE64_KEY_LENGTH = 68;
const BASE64_GROUP = 4;
/** `sk-` in base64, as the first, second or third byte of a group: spares all other texts the decoding. */
const BASE64_BEGIN = /c2st|NrL|zay/;
/** How often a text may have been percent-encoded before we stop looking for what is inside. */
const PERCENT_ROUNDS_MAX = 3;

/**
 * Whether a text contains a key: as it is, in base64 or base64url, and either of them percent-encoded up to three
 * times.
 *
 * A key with a true checksum counts also inside other text; one with a false checksum only if it is a word of its own,
 * so that `task-` and a digest are not taken for one.
 */
export function containsKey(text: string): boolean {
  return percentReadings(text).some((reading) => containsPlainKey(reading) || containsBase64Key(reading));
}

/** A text that somebody has typed, for whoever reads a log: `***` in the place of one that contains a key. */
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
    // Text of the same alphabet may come before the coded text, so its groups may begin anywhere.
    for (let from = 0; from < BASE64_GROUP; from += 1) {
      if (containsPlainKey(Buffer.from(run.slice(from), "base64").toString("latin1"))) return true;
    }
  }
  return false;
}

/** A text as it is and with its percent-encoding taken off, as often as there is any; `%XX` becomes that byte. */
export function percentReadings(text: string): readonly [string, ...string[]] {
  const readings: [string, ...string[]] = [text];
  for (let last = text; readings.length <= PERCENT_ROUNDS_MAX && last.includes("%"); readings.push(last)) {
    last = last.replace(/%[0-9a-f]{2}/gi, (code) => String.fromCharCode(Number.parseInt(code.slice(1), 16)));
  }
  return readings;
}
