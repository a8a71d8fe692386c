/**
 * How many names a JSON text has. To JSON.parse it is the names that are dear, and above all those that have not been there before:
 * half a million of them take a second, where as many numbers take 20 ms.
 */
import { randomInt } from "node:crypto";
import { COLON, QUOTE, skipKnown } from "./json-tokens.ts";

/** Names of members in a text, and how many of them are different; what is left over is not looked at. */
export interface NameLimits {
  readonly names: number;
  /** Below the places of the table that they are counted by. Those that fall onto one another are one: of 50,000 some 6,000 do. */
  readonly different: number;
}

const TABLE_BITS = 18;
const FNV_PRIME = 0x01000193;
/** Another one in each process, so that nobody knows which names fall onto one another. */
const BASIS = randomInt(2 ** 32);
const SPACE = 0x20;

/**
 * Whether a text has more names than that. Of a text that is no JSON it says something, too.
 * A byte of names and small values takes 1 to 2 ns, one of a long string next to nothing: it is to be asked of long texts only.
 */
export function hasMoreNames(json: Uint8Array, limits: NameLimits): boolean {
  const seen = new Uint8Array(1 << TABLE_BITS);
  let names = 0;
  let different = 0;
  for (let at = 0; at < json.length; at++) {
    if (json[at] !== QUOTE) continue;
    const end = skipKnown(json, at);
    if (end < 0) return false;
    let next = end;
    while ((json[next] as number) <= SPACE) next++;
    if (json[next] === COLON) {
      if (++names > limits.names) return true;
      const place = placeOf(json, at + 1, end - 1);
      if (seen[place] !== 1 && ++different > limits.different) return true;
      seen[place] = 1;
    }
    at = end - 1;
  }
  return false;
}

/** Where in the table a name is: by FNV-1a, of the bytes as they are written, escapes too. */
function placeOf(json: Uint8Array, start: number, end: number): number {
  let hash = BASIS;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (json[at] as number), FNV_PRIME);
  return (hash ^ (hash >>> TABLE_BITS)) & ((1 << TABLE_BITS) - 1);
}
