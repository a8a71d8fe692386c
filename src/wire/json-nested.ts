/**
 * Finds and replaces values below the top level in the bytes of a text that was already checked: it must be valid JSON
 * of bounded depth. Nothing is parsed.
 */
import {
  BACKSLASH,
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  decodeString,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipKnown,
  skipScalar,
  skipSpace,
  skipString,
} from "./json-tokens.ts";
import { asBuffer } from "./utf8.ts";

/** The position of a member among its neighbors; -1 if there is no such neighbor. */
interface MemberPosition {
  readonly nameStart: number;
  readonly valueStart: number;
  readonly valueEnd: number;
  readonly previousEnd: number;
  readonly nextStart: number;
}

/** An object's member of one name, if present, and the position for a new member. */
interface Looked {
  readonly place: MemberPosition | undefined;
  readonly lastEnd: number;
  readonly closeAt: number;
}

/**
 * Replaces or removes one member of a nested object, for example `["response", "model"]`, and changes no other byte.
 * Made for one call per event of a stream: nothing is parsed or serialized.
 * @param body a valid JSON text, not checked again. If a name occurs twice, the last one counts, as in JSON.parse.
 * @param rawValue JSON text; undefined removes the member. A new member is appended to an existing parent.
 * @returns the body itself if there is nothing to change: the path does not exist, or does not lead to an object.
 */
export function spliceNested(body: Uint8Array, path: readonly string[], rawValue: string | undefined): Uint8Array {
  let at = skipSpace(body, 0);
  for (let level = 0; level < path.length; level++) {
    if (body[at] !== OPEN_OBJECT) return body;
    const name = path[level] as string;
    const looked = lookFor(body, at, name);
    if (level === path.length - 1) return spliceMember(body, looked, name, rawValue);
    if (!looked?.place) return body;
    at = looked.place.valueStart;
  }
  return body;
}

/** The position of a value in a text: bytes [start, end). */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
}

/**
 * Finds the value at a path of names; the empty path is the top level.
 * @param body a valid JSON text, not checked again. If a name occurs twice, the last one counts, as in JSON.parse.
 * @returns undefined if the path does not exist.
 */
export function findNested(body: Uint8Array, path: readonly string[]): JsonSpan | undefined {
  let start = skipSpace(body, 0);
  let end = -1;
  for (const name of path) {
    if (body[start] !== OPEN_OBJECT) return undefined;
    const place = lookFor(body, start, name)?.place;
    if (!place) return undefined;
    start = place.valueStart;
    end = place.valueEnd;
  }
  if (path.length === 0) end = skipValue(body, start);
  return end < 0 ? undefined : { start, end };
}

/**
 * Finds the members of an object that have one of these names, in one pass, because a body may have very many members.
 * @param object begins with the object; a valid JSON text, not checked again. If a name occurs twice, the last one
 *   counts, as in JSON.parse. Only names in ASCII and without escapes are found.
 * @returns an empty map if it is something else, or invalid.
 */
export function findMembers(object: Uint8Array, names: readonly string[]): Map<string, JsonSpan> {
  const found = new Map<string, JsonSpan>();
  let i = skipSpace(object, 0);
  if (object[i] !== OPEN_OBJECT) return found;
  i = skipSpace(object, i + 1);
  while (object[i] === QUOTE) {
    const nameStart = i;
    const nameEnd = skipString(object, nameStart);
    if (nameEnd < 0) return new Map();
    const start = skipSpace(object, skipSpace(object, nameEnd) + 1);
    const end = skipValue(object, start);
    if (end < 0) return new Map();
    for (const name of names) {
      if (name.length === nameEnd - nameStart - 2 && isNamed(object, nameStart, nameEnd, name)) {
        found.set(name, { start, end });
      }
    }
    i = skipSpace(object, end);
    if (object[i] === COMMA) i = skipSpace(object, i + 1);
  }
  return object[i] === CLOSE_OBJECT ? found : new Map();
}

/**
 * Yields the elements of a valid JSON text that is an array; nothing if it is something else. A caller that stops early
 * does not pay for the rest.
 */
export function* elementSpans(array: Uint8Array): Generator<JsonSpan> {
  let i = skipSpace(array, 0);
  if (array[i] !== OPEN_ARRAY) return;
  i = skipSpace(array, i + 1);
  while (i < array.length && array[i] !== CLOSE_ARRAY) {
    const end = skipValue(array, i);
    if (end < 0) return;
    yield { start: i, end };
    i = skipSpace(array, end);
    if (array[i] === COMMA) i = skipSpace(array, i + 1);
  }
}

/** One member of an object: [nameStart, end) is all of it, [start, end) its value. */
export interface MemberSpan extends JsonSpan {
  /** Escapes decoded. */
  readonly name: string;
  /** Whether the name is written without escapes. */
  readonly plain: boolean;
  readonly nameStart: number;
}

/** Yields the members of a valid JSON text that is an object; nothing if it is something else. */
export function* memberSpans(object: Uint8Array): Generator<MemberSpan> {
  const buffer = asBuffer(object);
  let i = skipSpace(object, 0);
  if (object[i] !== OPEN_OBJECT) return;
  i = skipSpace(object, i + 1);
  while (object[i] === QUOTE) {
    const nameStart = i;
    const nameEnd = skipString(object, nameStart);
    if (nameEnd < 0) return;
    const start = skipSpace(object, skipSpace(object, nameEnd) + 1);
    const end = skipValue(object, start);
    if (end < 0) return;
    const raw = buffer.toString("utf8", nameStart + 1, nameEnd - 1);
    const plain = !raw.includes("\\");
    yield { name: plain ? raw : decodeString(buffer, nameStart, nameEnd), plain, nameStart, start, end };
    i = skipSpace(object, end);
    if (object[i] === COMMA) i = skipSpace(object, i + 1);
  }
}

/**
 * Calls `see` for each name in an object, or in the objects of an array, in one pass. The result of `see` is passed on
 * with the names of the object under that name; if it is undefined, the value is skipped.
 * @param body a valid JSON text whose depth is bounded (JSON_LIMITS); a value begins at `at`.
 * @param see gets the name (escapes decoded), whether it is written without escapes, and whether it is a repetition in
 *   its object.
 * @returns one past the value's last byte.
 */
export function visitNames<T>(
  body: Uint8Array,
  at: number,
  under: T,
  see: (name: string, plain: boolean, again: boolean, under: T) => T | undefined,
): number {
  if (body[at] === OPEN_ARRAY) return visitElements(body, at, under, see);
  if (body[at] !== OPEN_OBJECT) return skipValue(body, at);
  const seen = new Set<string>();
  let i = skipSpace(body, at + 1);
  while (body[i] === QUOTE) {
    const nameEnd = skipKnown(body, i);
    if (nameEnd < 0) return nameEnd;
    const name = nameIn(body, i, nameEnd);
    const inner = see(name, !hasEscape(body, i + 1, nameEnd - 1), seen.has(name), under);
    seen.add(name);
    const start = skipSpace(body, skipSpace(body, nameEnd) + 1);
    const end = inner === undefined ? skipValue(body, start) : visitNames(body, start, inner, see);
    if (end < 0) return end;
    i = skipSpace(body, end);
    if (body[i] === COMMA) i = skipSpace(body, i + 1);
  }
  return i + 1;
}

function visitElements<T>(body: Uint8Array, at: number, under: T, see: Parameters<typeof visitNames<T>>[3]): number {
  let i = skipSpace(body, at + 1);
  while (i < body.length && body[i] !== CLOSE_ARRAY) {
    const end = visitNames(body, i, under, see);
    if (end < 0) return end;
    i = skipSpace(body, end);
    if (body[i] === COMMA) i = skipSpace(body, i + 1);
  }
  return i + 1;
}

/** The name in the string token [start, end), escapes decoded. */
export function nameIn(body: Uint8Array, start: number, end: number): string {
  const buffer = asBuffer(body);
  for (let i = start + 1; i < end - 1; i++) {
    if ((body[i] as number) >= 0x80 || body[i] === BACKSLASH) return decodeString(buffer, start, end);
  }
  // In ASCII, its bytes are its characters.
  return buffer.toString("latin1", start + 1, end - 1);
}

/** Whether there is a backslash in [start, end). */
export function hasEscape(body: Uint8Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (body[i] === BACKSLASH) return true;
  return false;
}

function spliceMember(
  body: Uint8Array,
  looked: Looked | undefined,
  name: string,
  rawValue: string | undefined,
): Uint8Array {
  if (!looked) return body;
  const { place, lastEnd, closeAt } = looked;
  if (rawValue !== undefined) {
    if (place) return replace(body, place.valueStart, place.valueEnd, rawValue);
    const member = `${JSON.stringify(name)}:${rawValue}`;
    return lastEnd < 0 ? replace(body, closeAt, closeAt, member) : replace(body, lastEnd, lastEnd, `,${member}`);
  }
  if (!place) return body;
  if (place.nextStart >= 0) return replace(body, place.nameStart, place.nextStart, "");
  return replace(body, place.previousEnd >= 0 ? place.previousEnd : place.nameStart, place.valueEnd, "");
}

function replace(body: Uint8Array, start: number, end: number, text: string): Uint8Array {
  const added = Buffer.byteLength(text, "utf8");
  const result = Buffer.allocUnsafe(body.length - (end - start) + added);
  result.set(body.subarray(0, start), 0);
  result.write(text, start, "utf8");
  result.set(body.subarray(end), start + added);
  return result;
}

/** Searches the object that opens at `at`; undefined if it is invalid after all. */
function lookFor(body: Uint8Array, at: number, name: string): Looked | undefined {
  let place: MemberPosition | undefined;
  let lastEnd = -1;
  let i = skipSpace(body, at + 1);
  while (body[i] === QUOTE) {
    const nameStart = i;
    const nameEnd = skipString(body, nameStart);
    if (nameEnd < 0) return undefined;
    const valueStart = skipSpace(body, skipSpace(body, nameEnd) + 1);
    const valueEnd = skipValue(body, valueStart);
    if (valueEnd < 0) return undefined;
    i = skipSpace(body, valueEnd);
    const more = body[i] === COMMA;
    if (more) i = skipSpace(body, i + 1);
    if (isNamed(body, nameStart, nameEnd, name)) {
      place = { nameStart, valueStart, valueEnd, previousEnd: lastEnd, nextStart: more ? i : -1 };
    }
    lastEnd = valueEnd;
    if (!more) break;
  }
  return body[i] === CLOSE_OBJECT ? { place, lastEnd, closeAt: i } : undefined;
}

/** Skips a value of any kind, iteratively; within containers, only brackets and strings are examined. */
export function skipValue(body: Uint8Array, at: number): number {
  const first = body[at];
  if (first === QUOTE) return skipKnown(body, at);
  if (first !== OPEN_OBJECT && first !== OPEN_ARRAY) return skipScalar(body, at);
  let depth = 0;
  let i = at;
  while (i < body.length) {
    // A table is four times as fast as comparisons: a client can send 28 MB of digits.
    while (IS_NESTING[body[i] as number] === 0) i++;
    if (i >= body.length) return -1;
    const byte = body[i];
    if (byte === QUOTE) {
      i = skipKnown(body, i);
      if (i < 0) return i;
      continue;
    }
    i++;
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) depth++;
    else if (--depth === 0) return i;
  }
  return -1;
}

/** The bytes that begin or end a string or a container. */
const IS_NESTING = new Uint8Array(256);
for (const byte of [QUOTE, OPEN_OBJECT, OPEN_ARRAY, CLOSE_OBJECT, CLOSE_ARRAY]) IS_NESTING[byte] = 1;

/** Whether the name token in [start, end) spells `name`; decoded only if it has escapes or is not ASCII. */
export function isNamed(body: Uint8Array, start: number, end: number, name: string): boolean {
  const rawLength = end - start - 2;
  let plain = rawLength === name.length;
  for (let i = 0; i < rawLength; i++) {
    const byte = body[start + 1 + i] as number;
    if (byte === BACKSLASH || byte >= 0x80) return decodeString(asBuffer(body), start, end) === name;
    if (plain && byte !== name.charCodeAt(i)) plain = false;
  }
  return plain;
}
