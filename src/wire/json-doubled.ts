/** Finds names that occur twice in one object, in the bytes of a valid JSON text. */
import { hasEscape, isNamed, type JsonSpan, memberSpans, nameIn, skipValue } from "./json-nested.ts";
import { CLOSE_ARRAY, COMMA, OPEN_ARRAY, OPEN_OBJECT, QUOTE, skipKnown, skipSpace } from "./json-tokens.ts";

/** An element of a list, and its first repeated name, escapes decoded. */
interface DoubledName extends JsonSpan {
  readonly index: number;
  readonly name: string;
}

/**
 * Finds an element of a list in which a name occurs twice: among the names of the element itself, or else among those
 * of an object in the list `inner`. One pass, which takes little more time than skipping the list.
 * @param list begins with the list; a valid JSON text, not checked again.
 * @param inner the member whose list is searched as well; undefined for none.
 * @param isMeant whether an element with a repeated name is searched for; called for each in turn.
 * @returns the first element for which `isMeant` is true.
 */
export function findDoubledName(
  list: Uint8Array,
  inner: string | undefined,
  isMeant: (element: Uint8Array) => boolean,
): DoubledName | undefined {
  const names = new NamesOfElement(list, inner);
  let found: DoubledName | undefined;
  visitList(list, skipSpace(list, 0), (start, index) => {
    const end = names.see(start);
    const name = names.doubled ?? names.doubledWithin;
    if (name === undefined || end < 0 || !isMeant(list.subarray(start, end))) return end;
    found = { index, name, start, end };
    return -1;
  });
  return found;
}

/**
 * Calls `see` with each element's start and index.
 * @param see returns one past the element's last byte; a negative number stops.
 * @returns one past the list's last byte, or the negative number; 0 if there is no list.
 */
function visitList(body: Uint8Array, at: number, see: (start: number, index: number) => number): number {
  if (body[at] !== OPEN_ARRAY) return 0;
  let i = skipSpace(body, at + 1);
  for (let index = 0; i < body.length && body[i] !== CLOSE_ARRAY; index++) {
    const end = see(i, index);
    if (end < 0) return end;
    i = skipSpace(body, end);
    if (body[i] === COMMA) i = skipSpace(body, i + 1);
  }
  return i + 1;
}

/** Up to this many names, an object is compared byte by byte, without allocations for the names. */
const COMPARED_MAX = 16;

/** Checks the names of one object after another. */
class NamesOfElement {
  /** The first repeated name of the last object; undefined if there is none. */
  doubled: string | undefined;
  /** The same for the objects in its list. */
  doubledWithin: string | undefined;
  readonly #body: Uint8Array;
  readonly #inner: string | undefined;
  readonly #within: NamesOfElement | undefined;
  /** Starts and ends of the names seen so far. */
  readonly #places: number[] = [];

  /** @param inner the member of an object whose list is checked as well. */
  constructor(body: Uint8Array, inner: string | undefined) {
    this.#body = body;
    this.#inner = inner;
    this.#within = inner === undefined ? undefined : new NamesOfElement(body, undefined);
  }

  /**
   * Checks the value that begins at `at`. @returns one past its last byte; a negative number if it is invalid after
   * all.
   */
  see(at: number): number {
    this.doubled = undefined;
    this.doubledWithin = undefined;
    const body = this.#body;
    if (body[at] !== OPEN_OBJECT) return skipValue(body, at);
    let isCompared = true;
    let count = 0;
    let i = skipSpace(body, at + 1);
    while (body[i] === QUOTE) {
      const nameEnd = skipKnown(body, i);
      if (nameEnd < 0) return nameEnd;
      isCompared = isCompared && count < COMPARED_MAX && !hasEscape(body, i + 1, nameEnd - 1);
      if (isCompared) this.#compare(count++, i, nameEnd);
      const start = skipSpace(body, skipSpace(body, nameEnd) + 1);
      const end =
        body[start] === OPEN_ARRAY && this.#isInner(i, nameEnd) ? this.#seeList(start) : skipValue(body, start);
      if (end < 0) return end;
      i = skipSpace(body, end);
      if (body[i] === COMMA) i = skipSpace(body, i + 1);
    }
    if (!isCompared) this.doubled = doubledIn(body.subarray(at, i + 1));
    return i + 1;
  }

  #compare(count: number, start: number, end: number): void {
    const places = this.#places;
    for (let at = 0; at < 2 * count && this.doubled === undefined; at += 2) {
      const other = places[at] as number;
      if ((places[at + 1] as number) - other !== end - start || !isSame(this.#body, other, start, end - start))
        continue;
      this.doubled = nameIn(this.#body, start, end);
    }
    places[2 * count] = start;
    places[2 * count + 1] = end;
  }

  #isInner(start: number, end: number): boolean {
    return this.#inner !== undefined && isNamed(this.#body, start, end, this.#inner);
  }

  #seeList(at: number): number {
    const within = this.#within as NamesOfElement;
    // If the member occurs twice (which is reported itself), the last one counts, as in JSON.parse.
    this.doubledWithin = undefined;
    return visitList(this.#body, at, (start) => {
      const end = within.see(start);
      this.doubledWithin ??= within.doubled;
      return end;
    });
  }
}

function isSame(body: Uint8Array, one: number, other: number, length: number): boolean {
  for (let i = 0; i < length; i++) if (body[one + i] !== body[other + i]) return false;
  return true;
}

function doubledIn(object: Uint8Array): string | undefined {
  const seen = new Set<string>();
  for (const { name } of memberSpans(object)) {
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}
