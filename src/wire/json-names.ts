/**
 * Counts the names in a JSON text. For JSON.parse, names are expensive, above all names that it has not seen before:
 * half a million of them take a second, but the same number of numbers takes 20 ms.
 */
import { randomInt } from "node:crypto";
import { COLON, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipKnown } from "./json-tokens.ts";

/** Limits on the names of members in a text, and on how many of them are distinct; the search stops at either limit. */
export interface NameLimits {
  readonly names: number;
  /**
   * Must be below the size of the table that counts them. Names that collide count as one: of 50,000 names, some 6,000
   * do.
   */
  readonly different: number;
  /** Arrays and objects, which take 60 bytes of memory each, however little there is in them. Default: any number. */
  readonly containers?: number;
  /** Members and elements together, counted by the commas between them. Default: any number. */
  readonly values?: number;
}

const TABLE_BITS = 18;
const FNV_PRIME = 0x01000193;
/** Different in each process, so that colliding names cannot be predicted. */
const BASIS = randomInt(2 ** 32);
const SPACE = 0x20;

/** Whether a text has more names than the limits. The result is defined even if the text is not JSON. */
export function hasMoreNames(json: Uint8Array, limits: NameLimits): boolean {
  return countNames(json, limits) === "more";
}

/**
 * Counts the names of a text. The result is defined even if the text is not JSON.
 *
 * Takes 1 to 2 ns per byte of names and small values, and next to nothing for a long string. Only for long texts.
 *
 * @returns `more` if there are more than the limits, otherwise the number of commas: no array has more elements than one more.
 */
export function countNames(json: Uint8Array, limits: NameLimits): "more" | { readonly commas: number } {
  const { containers: containersMax = Number.POSITIVE_INFINITY, values: valuesMax = Number.POSITIVE_INFINITY } = limits;
  let containers = 0;
  const seen = new Uint8Array(1 << TABLE_BITS);
  let names = 0;
  let different = 0;
  let commas = 0;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte !== QUOTE) {
      if (byte === COMMA) {
        if (++commas > valuesMax) return "more";
      } else if ((byte === OPEN_ARRAY || byte === OPEN_OBJECT) && ++containers > containersMax) return "more";
      continue;
    }
    const end = skipKnown(json, at);
    if (end < 0) return { commas };
    let next = end;
    while ((json[next] as number) <= SPACE) next++;
    if (json[next] === COLON) {
      if (++names > limits.names) return "more";
      const place = placeOf(json, at + 1, end - 1);
      if (seen[place] !== 1 && ++different > limits.different) return "more";
      seen[place] = 1;
    }
    at = end - 1;
  }
  return { commas };
}

/** The index of a name in the table: FNV-1a over the bytes as written, including escapes. */
function placeOf(json: Uint8Array, start: number, end: number): number {
  let hash = BASIS;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (json[at] as number), FNV_PRIME);
  return (hash ^ (hash >>> TABLE_BITS)) & ((1 << TABLE_BITS) - 1);
}
