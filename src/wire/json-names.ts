/**
 * How many names a JSON text has. To JSON.parse it is the names that are dear, and above all those that have not been there before:
 * half a million of them take a second, where as many numbers take 20 ms.
 */
import { randomInt } from "node:crypto";
import { BACKSLASH, COLON, QUOTE } from "./json-scan.ts";

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
 * A byte takes 1 to 2 ns: it is to be asked of long texts only.
 */
export function hasMoreNames(json: Uint8Array, limits: NameLimits): boolean {
  const seen = new Uint8Array(1 << TABLE_BITS);
  let names = 0;
  let different = 0;
  for (let at = 0; at < json.length; at++) {
    if (json[at] !== QUOTE) continue;
    // By FNV-1a, of the bytes as they are written, escapes too.
    let hash = BASIS;
    for (at++; at < json.length && json[at] !== QUOTE; at++) {
      hash = Math.imul(hash ^ (json[at] as number), FNV_PRIME);
      if (json[at] === BACKSLASH) hash = Math.imul(hash ^ (json[++at] as number), FNV_PRIME);
    }
    let next = at + 1;
    while ((json[next] as number) <= SPACE) next++;
    if (json[next] !== COLON) continue;
    if (++names > limits.names) return true;
    const place = (hash ^ (hash >>> TABLE_BITS)) & ((1 << TABLE_BITS) - 1);
    if (seen[place] === 1) continue;
    seen[place] = 1;
    if (++different > limits.different) return true;
  }
  return false;
}
