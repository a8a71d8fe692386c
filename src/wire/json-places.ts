/**
 * Finds values at many places of a text that was already checked (it must be valid JSON of bounded depth) in one pass, because the
 * text can have 32 MiB. Nothing else of it is parsed.
 */
import { type JsonSpan, nameIn, skipValue } from "./json-nested.ts";
import { CLOSE_ARRAY, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipKnown, skipSpace } from "./json-tokens.ts";
import { asBuffer } from "./utf8.ts";

/** Which members of an object are wanted, by name. */
export interface WantedPlaces<K> {
  readonly values: ReadonlyMap<string, K>;
  /** Members with further objects. */
  readonly inner?: ReadonlyMap<string, InnerPlaces<K>> | undefined;
}

interface InnerPlaces<K> {
  /** Whether the member is a list of such objects, or such an object itself; anything else is skipped. */
  readonly isList: boolean;
  readonly wanted: WantedPlaces<K>;
}

/** A value that was found. */
interface FoundPlace<K> extends JsonSpan {
  readonly kind: K;
}

/**
 * Finds the wanted values.
 * @param body a valid JSON text, not checked again. If a name occurs twice in an object, the last one counts, as in JSON.parse.
 * @returns in the order of the text.
 */
export function findPlaces<K>(body: Uint8Array, wanted: WantedPlaces<K>): readonly FoundPlace<K>[] {
  const found: FoundPlace<K>[] = [];
  const at = skipSpace(body, 0);
  if (body[at] === OPEN_OBJECT) lookInObject(body, at, wanted, found);
  return found.sort((left, right) => left.start - right.start);
}

/** @returns one past the object's last byte; negative if it is invalid after all. */
function lookInObject<K>(body: Uint8Array, at: number, wanted: WantedPlaces<K>, found: FoundPlace<K>[]): number {
  const byName = new Map<string, readonly FoundPlace<K>[]>();
  let i = skipSpace(body, at + 1);
  while (body[i] === QUOTE) {
    const nameEnd = skipKnown(body, i);
    if (nameEnd < 0) return nameEnd;
    const name = nameIn(body, i, nameEnd);
    const start = skipSpace(body, skipSpace(body, nameEnd) + 1);
    const kind = wanted.values.get(name);
    const inner = wanted.inner?.get(name);
    const within: FoundPlace<K>[] = [];
    const end = inner ? lookInside(body, start, inner, within) : skipValue(body, start);
    if (end < 0) return end;
    if (inner) byName.set(name, within);
    else if (kind !== undefined) byName.set(name, [{ kind, start, end }]);
    i = skipSpace(body, end);
    if (body[i] === COMMA) i = skipSpace(body, i + 1);
  }
  for (const places of byName.values()) for (const place of places) found.push(place);
  return i + 1;
}

function lookInside<K>(body: Uint8Array, at: number, inner: InnerPlaces<K>, found: FoundPlace<K>[]): number {
  const { isList, wanted } = inner;
  if (!isList && body[at] === OPEN_OBJECT) return lookInObject(body, at, wanted, found);
  if (!isList || body[at] !== OPEN_ARRAY) return skipValue(body, at);
  let i = skipSpace(body, at + 1);
  while (i < body.length && body[i] !== CLOSE_ARRAY) {
    const end = body[i] === OPEN_OBJECT ? lookInObject(body, i, wanted, found) : skipValue(body, i);
    if (end < 0) return end;
    i = skipSpace(body, end);
    if (body[i] === COMMA) i = skipSpace(body, i + 1);
  }
  return i + 1;
}

/**
 * Replaces values at places, and changes no other byte.
 * @param text of the new value, by the kind of a place and its raw value; undefined: it stays.
 * @returns the body itself if nothing changes.
 */
export function replacePlaces<K>(
  body: Uint8Array,
  places: readonly FoundPlace<K>[],
  text: (kind: K, raw: Uint8Array) => string | undefined,
): Uint8Array {
  const pieces: Uint8Array[] = [];
  let written = 0;
  for (const { kind, start, end } of places) {
    const wanted = text(kind, body.subarray(start, end));
    if (wanted === undefined) continue;
    pieces.push(body.subarray(written, start), Buffer.from(wanted));
    written = end;
  }
  return pieces.length === 0 ? body : Buffer.concat([...pieces, asBuffer(body).subarray(written)]);
}
