/**
 * A linear scan of a body that limits what JSON.parse gets (docs/failure-model.md rows 44 and 45), and finds the
 * top-level members. It can run in steps, so that a large body does not block everything else.
 */
import { isUtf8 } from "node:buffer";
import {
  JSON_LIMITS,
  type JsonFault,
  type JsonLimits,
  nameTooLong,
  noObject,
  notJson,
  numberTooLong,
  tooDeep,
  tooManyMembers,
  tooManyTokens,
} from "./json-fault.ts";
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  decodeString,
  endOfString,
  faultPosition,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipInString,
  skipScalar,
  skipSpace,
} from "./json-tokens.ts";
import { asBuffer } from "./utf8.ts";

/** The position of a top-level member in the body; offsets are byte positions. */
export interface JsonMember {
  /** The member's name, escapes decoded. */
  readonly name: string;
  /** First byte of the name's opening quote. */
  readonly nameStart: number;
  /** First byte of the value. */
  readonly valueStart: number;
  /** One past the last byte of the value. */
  readonly valueEnd: number;
}

export interface JsonScan {
  readonly members: readonly JsonMember[];
  /** Offset of the closing brace of the top-level object. */
  readonly end: number;
  /** Names and values, at all depths. */
  readonly tokens: number;
}

/** Narrows the result of a scan to its fault. */
export function isJsonFault(result: JsonScan | JsonFault): result is JsonFault {
  return "fault" in result;
}

/**
 * Scans a body that must be one JSON object, in one pass, without recursion. JSON.parse accepts a body that passes and
 * is valid UTF-8 (rows 44 to 47 and 51). Duplicates are searched only at the top level, where the members are that
 * route and bill.
 */
export function scanJson(bytes: Uint8Array, limits: JsonLimits = JSON_LIMITS): JsonScan | JsonFault {
  const result = new JsonScanner(bytes, limits).advance(bytes.length + 1);
  if (result === undefined) throw new Error("a scan of the whole body has not come to its end");
  return result;
}

/**
 * `scanJson` for a body that JSON.parse has accepted: of a long string, only the end is searched.
 * @param names of its members in order, if known: a name that is written in this form is not decoded again (0.2 us
 *   each).
 */
export function scanParsedJson(bytes: Uint8Array, limits: JsonLimits, names: readonly string[]): JsonScan | JsonFault {
  const scanner = new JsonScanner(asBuffer(bytes), limits, { parsedNames: names });
  const result = scanner.advance(bytes.length + 1);
  if (result === undefined) throw new Error("a scan of the whole body has not come to its end");
  return result;
}

/**
 * What the scanner expects next. The order matters: a closing bracket may follow three of them, two are inside a
 * string.
 */
const BEGIN = 0;
const VALUE = 1;
const NAME = 2;
const COLON_NEXT = 3;
const VALUE_OR_CLOSE = 4;
const NAME_OR_CLOSE = 5;
const COMMA_OR_CLOSE = 6;
const END = 7;
const IN_NAME = 8;
const IN_STRING = 9;

/** An object, array or string that is too long to be parsed at once. */
export interface LongValue {
  /** One past its last byte. */
  readonly end: number;
  /**
   * Commas between its members or elements, in ascending order. Between two of them is either one long value, or a run
   * of short values and white space. The values of such a run are at most twice the minimum length of a long value.
   */
  readonly cuts: readonly number[];
}

const NO_CUTS: readonly number[] = [];

/**
 * More than any body has, and still a small integer: the loops below are half as fast if one of their bounds is not.
 */
const NO_LIMIT = 2 ** 28;

/** The scan of one body, in any number of steps. */
export class JsonScanner {
  /** The values longer than `longBytes`, including the top-level object, by the position of their first byte. */
  readonly longValues = new Map<number, LongValue>();
  readonly #bytes: Uint8Array;
  readonly #limits: Required<JsonLimits>;
  readonly #longBytes: number;
  readonly #parsedNames: readonly string[] | undefined;
  /** By depth, for the open array or object: its kind, its start, its last comma and its cuts. */
  readonly #isArrayAt = [0];
  readonly #startAt = [0];
  readonly #commaAt = [0];
  readonly #cutAt = [0];
  readonly #cuts: (number[] | undefined)[] = [undefined];
  /** Four positions for each top-level member: name start and end, value start and end. */
  readonly #edges: number[] = [];
  #state = BEGIN;
  #at = 0;
  #depth = 0;
  #tokens = 0;
  #stringStart = 0;

  /**
   * @param longBytes longer values are added to `longValues`; by default none.
   * @param parsedNames of a body that JSON.parse has accepted; it is then scanned in one step.
   */
  constructor(
    bytes: Uint8Array,
    limits: JsonLimits,
    {
      longBytes = NO_LIMIT,
      parsedNames,
    }: { readonly longBytes?: number; readonly parsedNames?: readonly string[] } = {},
  ) {
    this.#bytes = bytes;
    this.#parsedNames = parsedNames;
    this.#limits = {
      depthMax: limits.depthMax,
      tokensMax: limits.tokensMax,
      membersMax: limits.membersMax ?? NO_LIMIT,
      nameBytesMax: limits.nameBytesMax ?? NO_LIMIT,
      numberCharsMax: limits.numberCharsMax ?? NO_LIMIT,
    };
    this.#longBytes = longBytes;
  }

  /**
   * Continues the scan. One loop over local variables: as methods on the fields above, each token took five times as
   * long.
   * @param byteCount approximate number of bytes to scan.
   * @returns undefined if there are more bytes to scan.
   */
  advance(byteCount: number): JsonScan | JsonFault | undefined {
    const bytes = this.#bytes;
    const limits = this.#limits;
    const isArrayAt = this.#isArrayAt;
    const startAt = this.#startAt;
    const commaAt = this.#commaAt;
    const cutAt = this.#cutAt;
    const edges = this.#edges;
    const longBytes = this.#longBytes;
    const isParsed = this.#parsedNames !== undefined;
    const { depthMax, tokensMax, nameBytesMax, numberCharsMax } = limits;
    const edgesMax = limits.membersMax * 4;
    const { length } = bytes;
    const stop = Math.min(length, this.#at + byteCount);
    let state = this.#state;
    let depth = this.#depth;
    let tokens = this.#tokens;
    let start = this.#stringStart;
    let i = this.#at;
    for (;;) {
      if (state >= IN_NAME) {
        const nameStop = state === IN_NAME ? start + nameBytesMax + 2 : stop;
        i =
          isParsed && state === IN_STRING
            ? endOfString(bytes as Buffer, i)
            : skipInString(bytes, i, nameStop < stop ? nameStop : stop);
        if (i < 0) return notJson(faultPosition(i), length);
        if (i >= nameStop && state === IN_NAME) return nameTooLong(start, limits);
        if (i >= stop) break;
        i++;
        if (depth === 1) edges.push(i);
        if (state === IN_NAME) {
          const isColon = i < stop && bytes[i] === COLON;
          state = isColon ? VALUE : COLON_NEXT;
          if (isColon) i++;
        } else {
          if (i - start > longBytes) this.#long(start, { end: i, cuts: NO_CUTS }, depth);
          state = COMMA_OR_CLOSE;
        }
      }
      i = skipSpace(bytes, i, stop);
      if (i >= stop) break;
      const byte = bytes[i] as number;

      if (state === COMMA_OR_CLOSE && byte === COMMA) {
        state = isArrayAt[depth] === 1 ? VALUE : NAME;
        if (i - (cutAt[depth] as number) > longBytes) this.#cut(i, depth);
        commaAt[depth] = i;
        i++;
        continue;
      }

      if (state === COLON_NEXT) {
        if (byte !== COLON) return notJson(i, length);
        state = VALUE;
        i++;
        continue;
      }

      if (state >= VALUE_OR_CLOSE && byte === (isArrayAt[depth] === 1 ? CLOSE_ARRAY : CLOSE_OBJECT)) {
        if (state === END) return notJson(i, length);
        i++;
        const opened = startAt[depth] as number;
        depth--;
        if (i - opened > longBytes) this.#long(opened, { end: i, cuts: this.#cuts[depth + 1] ?? NO_CUTS }, depth);
        if (depth === 1) edges.push(i);
        if (depth === 0) edges.push(i - 1);
        state = depth === 0 ? END : COMMA_OR_CLOSE;
        continue;
      }
      if (state === COMMA_OR_CLOSE || state === END) return notJson(i, length);
      if (state === BEGIN && byte !== OPEN_OBJECT) return noObject(bytes, i);

      if (++tokens > tokensMax) return tooManyTokens(i, limits);
      if (depth === 1) {
        if (edges.length >= edgesMax) return tooManyMembers(i, limits);
        edges.push(i);
      }
      if (byte === QUOTE) {
        start = i;
        state = state === NAME || state === NAME_OR_CLOSE ? IN_NAME : IN_STRING;
        i++;
        continue;
      }
      if (state === NAME || state === NAME_OR_CLOSE) {
        return notJson(i, length);
      } else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
        if (depth >= depthMax) return tooDeep(i, limits);
        depth++;
        startAt[depth] = i;
        commaAt[depth] = i;
        cutAt[depth] = i;
        this.#cuts[depth] = undefined;
        isArrayAt[depth] = byte === OPEN_ARRAY ? 1 : 0;
        state = byte === OPEN_ARRAY ? VALUE_OR_CLOSE : NAME_OR_CLOSE;
        i++;
      } else {
        const numberStop = i + numberCharsMax + 1;
        const end = skipScalar(bytes, i, numberStop < length ? numberStop : length);
        if (end < 0) return notJson(faultPosition(end), length);
        if (end - i > numberCharsMax) return numberTooLong(i, limits);
        if (depth === 1) edges.push(end);
        i = end;
        state = COMMA_OR_CLOSE;
      }
    }
    if (stop === length) {
      if (state === END) return nameMembers(bytes, edges, this.#parsedNames ?? NO_NAMES, tokens);
      return state === BEGIN ? noObject(bytes, i) : notJson(length, length);
    }
    this.#state = state;
    this.#depth = depth;
    this.#tokens = tokens;
    this.#stringStart = start;
    this.#at = i;
    return undefined;
  }

  #cut(comma: number, depth: number): void {
    const cuts = this.#cuts[depth];
    if (cuts) cuts.push(comma);
    else this.#cuts[depth] = [comma];
    this.#cutAt[depth] = comma;
  }

  /** Records a long value; its neighbors at this depth are cut off. */
  #long(start: number, value: LongValue, depth: number): void {
    this.longValues.set(start, value);
    const comma = this.#commaAt[depth] as number;
    if (comma > (this.#cutAt[depth] as number)) this.#cut(comma, depth);
    // Far enough away that the next comma is a cut.
    this.#cutAt[depth] = -1 - this.#longBytes;
  }
}

const NO_NAMES: readonly string[] = [];

/**
 * Names are decoded only after the limits were checked, so that a flood of names costs no more than a flood of values.
 * @param edges four for each member, then the position of the closing brace.
 * @param likely names of the members in order, as far as known; without duplicates.
 */
function nameMembers(
  bytes: Uint8Array,
  edges: readonly number[],
  likely: readonly string[],
  tokens: number,
): JsonScan | JsonFault {
  const buffer = asBuffer(bytes);
  const members: JsonMember[] = [];
  /** Created when a name is not the likely one at its position; the likely names are distinct. */
  let seen: Set<string> | undefined;
  const end = edges[edges.length - 1] as number;
  for (let e = 0; e < edges.length - 1; e += 4) {
    const nameStart = edges[e] as number;
    const nameEnd = edges[e + 1] as number;
    const known = likely[e >> 2];
    const isKnown = known !== undefined && isWrittenAs(buffer, nameStart, nameEnd, known);
    const name = isKnown ? known : decodeString(buffer, nameStart, nameEnd);
    if (!isKnown && name.includes("\ufffd") && !isUtf8(buffer.subarray(nameStart, nameEnd))) {
      return { fault: "not_json", at: nameStart, reason: `The name at byte ${nameStart} is not valid UTF-8.` };
    }
    if (!isKnown) seen ??= new Set(members.map((member) => member.name));
    if (seen?.has(name)) {
      return { fault: "duplicate_field", at: nameStart, name, reason: `The name at byte ${nameStart} appears twice.` };
    }
    seen?.add(name);
    members.push({ name, nameStart, valueStart: edges[e + 2] as number, valueEnd: edges[e + 3] as number });
  }
  return { members, end, tokens };
}

/**
 * Whether the string token in [start, end) is this text in ASCII and without escapes, so that decoding would give the
 * same.
 */
function isWrittenAs(bytes: Uint8Array, start: number, end: number, text: string): boolean {
  if (end - start - 2 !== text.length) return false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (bytes[start + 1 + i] !== code || code >= 0x80 || code === BACKSLASH) return false;
  }
  return true;
}
