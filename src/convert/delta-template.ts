/**
 * Deltas of one reply differ in a text and perhaps in a number: a frame that has been parsed is the template by which the
 * frames after it are recognised as bytes. A frame that matches is valid JSON that says the same but for these, so it
 * needs no parser: of a burst of 200 events this saves half of the work. Anything else than a text without escapes in the
 * same place of the same frame is no match, and is parsed.
 */

import type { TextPlace } from "./produced.ts";

/** What differs from one delta to the next, by the names of members that the frame has only once. */
export interface Varying {
  /** The member with the model's output. */
  readonly text: string;
  /** A member that counts events. */
  readonly number?: string | undefined;
  /** A member that means nothing (`obfuscation`). */
  readonly noise?: string | undefined;
}

/** Where a frame that matched has its text. */
export interface Match extends TextPlace {
  /** Of the member that counts; undefined where the frame has none. */
  readonly number: number | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const TEXT = 0;
const NUMBER = 1;
const NOISE = 2;

/** A part of a frame that differs from one to the next: its value, without quotes. */
interface TemplateField {
  readonly kind: typeof TEXT | typeof NUMBER | typeof NOISE;
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const COLON = 0x3a;
const LF = 0x0a;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
/** Digits that a number surely holds exactly. */
const DIGITS_MAX = 15;

export class DeltaTemplate {
  /** What the last match was. */
  readonly found: Match;
  readonly #found: Writable<Match> = { textStart: 0, textEnd: 0, isAscii: true, number: undefined };
  readonly #kinds: readonly TemplateField["kind"][];
  /** Bytes in front of each varying part, and after the last. */
  readonly #literals: readonly Uint8Array[];
  readonly #literalBytes: number;
  /** The same of the frame that the client gets, where that is another. */
  readonly #written: readonly Uint8Array[] | undefined;
  /** Start and end of each varying part of the last match. */
  readonly #places: Int32Array;

  private constructor(
    kinds: readonly TemplateField["kind"][],
    literals: readonly Uint8Array[],
    written?: readonly Uint8Array[],
  ) {
    this.found = this.#found;
    this.#kinds = kinds;
    this.#literals = literals;
    this.#literalBytes = literals.reduce((sum, { length }) => sum + length, 0);
    this.#written = written;
    this.#places = new Int32Array(2 * kinds.length);
  }

  /**
   * @param frame a whole frame with its blank line, of valid JSON.
   * @param sent the frame that the client gets in its place.
   * @returns undefined where its parts cannot be told by its bytes alone.
   */
  static of(frame: Buffer, sent: Buffer, varying: Varying): DeltaTemplate | undefined {
    const fields = fieldsOf(frame, varying);
    const kinds = fields?.map(({ kind }) => kind);
    if (!fields || !kinds) return undefined;
    // A name that is written with an escape may be that of a varying member once more.
    if (literalsOf(frame, fields).some((literal) => literal.includes(BACKSLASH))) return undefined;
    if (sent === frame) return new DeltaTemplate(kinds, literalsOf(frame, fields));
    const sentFields = fieldsOf(sent, varying);
    if (!sentFields?.every(({ kind }, index) => kind === kinds[index])) return undefined;
    return new DeltaTemplate(kinds, literalsOf(frame, fields), literalsOf(sent, sentFields));
  }

  /** The same of a frame that was written here. */
  static ofOwn(frame: Buffer, varying: Varying): DeltaTemplate | undefined {
    const fields = fieldsOf(frame, varying);
    const kinds = fields?.map(({ kind }) => kind);
    return fields && kinds && new DeltaTemplate(kinds, literalsOf(frame, fields));
  }

  /** Whether the client gets other bytes than came: those of `write`. */
  get isRewritten(): boolean {
    return this.#written !== undefined;
  }

  /** What the client gets of the frame of the last match. */
  write(bytes: Uint8Array, pieces: Uint8Array[]): void {
    const written = this.#written ?? this.#literals;
    for (const [index, literal] of written.entries()) {
      pieces.push(literal);
      if (index < this.#kinds.length) pieces.push(bytes.subarray(this.#places[2 * index], this.#places[2 * index + 1]));
    }
  }

  /** The most bytes that such a frame has beside its text, with this number or one below it. */
  bytesAround(number: number): number {
    return this.#kinds.includes(NUMBER) ? this.#literalBytes + String(number).length : this.#literalBytes;
  }

  /**
   * Writes the frame itself with another text and number.
   * @param source has the text, from `start` to `end`.
   * @returns where it ends.
   */
  put(into: Buffer, at: number, source: Uint8Array, start: number, end: number, number: number): number {
    let next = at;
    for (let i = 0; i < this.#literals.length; i++) {
      const literal = this.#literals[i] as Uint8Array;
      into.set(literal, next);
      next += literal.length;
      const kind = this.#kinds[i];
      // Texts are short: a loop is done before a call has begun to copy.
      if (kind === TEXT) for (let from = start; from < end; from++) into[next++] = source[from] as number;
      else if (kind === NUMBER) {
        const digits = String(number);
        for (let digit = 0; digit < digits.length; digit++) into[next++] = digits.charCodeAt(digit);
      }
    }
    return next;
  }

  /** Whether a whole frame is such a frame, though its text may have escapes. */
  fits(frame: Uint8Array): boolean {
    return this.#scan(frame, 0, true) === frame.length;
  }

  /** @returns where the frame that begins at `from` ends; -1 when it is not such a frame, or not all there. */
  match(bytes: Uint8Array, from: number): number {
    return this.#scan(bytes, from, false);
  }

  #scan(bytes: Uint8Array, from: number, mayEscape: boolean): number {
    let at = this.#literal(0, bytes, from);
    for (let i = 0; at >= 0 && i < this.#kinds.length; i++) {
      const kind = this.#kinds[i];
      this.#places[2 * i] = at;
      at = kind === NUMBER ? this.#number(bytes, at) : this.#string(bytes, at, kind === TEXT, mayEscape);
      this.#places[2 * i + 1] = at;
      if (at >= 0) at = this.#literal(i + 1, bytes, at);
    }
    return at;
  }

  #literal(index: number, bytes: Uint8Array, from: number): number {
    const literal = this.#literals[index] as Uint8Array;
    const { length } = literal;
    if (from + length > bytes.length) return -1;
    for (let i = 0; i < length; i++) if (bytes[from + i] !== literal[i]) return -1;
    return from + length;
  }

  #string(bytes: Uint8Array, from: number, isText: boolean, mayEscape: boolean): number {
    let all = 0;
    let at = from;
    for (; at < bytes.length; at++) {
      const byte = bytes[at] as number;
      if (byte === QUOTE) break;
      if (byte < SPACE || (byte === BACKSLASH && !mayEscape)) return -1;
      if (byte === BACKSLASH) at++;
      all |= byte;
    }
    // An empty text is no output.
    if (at === from || at >= bytes.length) return -1;
    if (isText) {
      this.#found.textStart = from;
      this.#found.textEnd = at;
      this.#found.isAscii = all < 0x80;
    }
    return at;
  }

  #number(bytes: Uint8Array, from: number): number {
    let value = 0;
    let at = from;
    for (; isDigit(bytes[at]) && at - from < DIGITS_MAX; at++) value = value * 10 + ((bytes[at] as number) - DIGIT_0);
    if (at === from || (bytes[from] === DIGIT_0 && at - from > 1)) return -1;
    this.#found.number = value;
    return at;
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= DIGIT_0 && byte <= DIGIT_9;
}

function fieldsOf(frame: Buffer, { text, number, noise }: Varying): readonly TemplateField[] | undefined {
  if (frame[frame.length - 1] !== LF) return undefined;
  const fields = [
    fieldOf(frame, text, TEXT),
    ...(number === undefined ? [] : [fieldOf(frame, number, NUMBER)]),
    ...(noise === undefined ? [] : [fieldOf(frame, noise, NOISE)]),
  ];
  return fields.every((field) => field !== undefined) ? fields.sort((a, b) => a.start - b.start) : undefined;
}

/** Copies: the frame is a view of a chunk, which would stay in memory. */
function literalsOf(frame: Buffer, fields: readonly TemplateField[]): readonly Uint8Array[] {
  const ends = [...fields.map(({ start }) => start), frame.length];
  return ends.map((end, index) => Uint8Array.from(frame.subarray(fields[index - 1]?.end ?? 0, end)));
}

/** Where the value of the only member of this name is, without its quotes; undefined when there is not just one. */
function fieldOf(frame: Buffer, name: string, kind: TemplateField["kind"]): TemplateField | undefined {
  // Inside of a text the quotes are escaped, so that this is a member's name, or a value, wherever it is found.
  const key = `"${name}"`;
  const found = frame.indexOf(key);
  if (found < 0 || frame.includes(key, found + 1) || frame[found + key.length] !== COLON) return undefined;
  let start = found + key.length + 1;
  while (frame[start] === SPACE) start++;
  if (kind === NUMBER) {
    let end = start;
    while (isDigit(frame[end])) end++;
    return end > start ? { kind, start, end } : undefined;
  }
  if (frame[start] !== QUOTE) return undefined;
  start++;
  const end = frame.indexOf(QUOTE, start);
  return end > start && frame[end - 1] !== BACKSLASH ? { kind, start, end } : undefined;
}
