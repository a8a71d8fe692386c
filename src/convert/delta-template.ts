/**
 * Deltas of one reply differ in a text and perhaps in a number: a frame that has been parsed is the template by which the
 * frames after it are recognised as bytes. A frame that matches is valid JSON that says the same but for these, so it
 * needs no parser: of a burst of 200 events this saves half of the work. Anything else than a text without escapes in the
 * same place of the same frame is no match, and is parsed. Frames that come together are taken as one run.
 */

import { isUtf8 } from "node:buffer";
import type { TextRun } from "./produced.ts";

/** Templates made for nothing, one after another, before a stream is taken for one whose frames differ in more than their text. */
export const TEMPLATE_MISSES_MAX = 8;

/** What differs from one delta to the next, by the names of members that the frame has only once. */
export interface Varying {
  /** The member with the model's output. */
  readonly text: string;
  /** A member that counts events. */
  readonly number?: string | undefined;
  /** A member that means nothing (`obfuscation`). */
  readonly noise?: string | undefined;
}

/** Frames that matched one after another. */
export interface DeltaRun extends TextRun {
  /** Where its first frame begins and its last one ends. */
  readonly start: number;
  readonly end: number;
  /** Of the last frame, of the member that counts; undefined where frames have none. */
  readonly number: number | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const TEXT = 0;
const NUMBER = 1;
const NOISE = 2;
/** In place of a kind: the frame ends here. */
const END = 3;

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
/** The first byte that is no character of its own. */
const ASCII_END = 0x80;
/** Digits that a number surely holds exactly. */
const DIGITS_MAX = 15;
/** Bytes that are compared at once: the 230 bytes around a text take 21 ns with four, 137 one by one. */
const WORD_BYTES = 4;
/** Longest run; the frames after it are the next one. */
const RUN_DELTAS_MAX = 512;
/** A text, a number, a noise. */
const FIELDS_MAX = 3;

/** The last run that was found: one for all streams, since a run is matched and used in one go. */
const RUN: Writable<DeltaRun> = {
  start: 0,
  end: 0,
  deltas: 0,
  textBytes: 0,
  isAscii: true,
  number: undefined,
  places: new Int32Array(2 * FIELDS_MAX * RUN_DELTAS_MAX),
  stride: 0,
  textAt: 0,
};

export class DeltaTemplate {
  /**
   * Literals and kinds in turn, of each literal its length, the mask of its last word, and its words. One list of numbers: with
   * thousands of streams each object more that a match looks at is one more that is in no cache.
   */
  readonly #pattern: Int32Array;
  readonly #kinds: readonly TemplateField["kind"][];
  /** Of the list of places: how many a frame has, and which are those of its text and of its number. */
  readonly #stride: number;
  readonly #textAt: number;
  readonly #numberAt: number | undefined;
  readonly #literalBytes: number;
  /** Bytes in front of each varying part, and after the last, of the frame that is written. Undefined: none is. */
  readonly #written: readonly Uint8Array[] | undefined;

  private constructor(
    kinds: readonly TemplateField["kind"][],
    literals: readonly Uint8Array[],
    written?: readonly Uint8Array[],
  ) {
    this.#pattern = patternOf(kinds, literals);
    this.#kinds = kinds;
    this.#stride = 2 * kinds.length;
    this.#textAt = 2 * kinds.indexOf(TEXT);
    this.#numberAt = kinds.includes(NUMBER) ? 2 * kinds.indexOf(NUMBER) : undefined;
    this.#literalBytes = sizeOf(literals);
    // Copies: the frame is a view of a chunk, which would stay in memory.
    this.#written = written?.map((literal) => Uint8Array.from(literal));
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
    const literals = literalsOf(frame, fields);
    if (literals.some((literal) => literal.includes(BACKSLASH))) return undefined;
    if (sent === frame) return new DeltaTemplate(kinds, literals);
    const sentFields = fieldsOf(sent, varying);
    if (!sentFields?.every(({ kind }, index) => kind === kinds[index])) return undefined;
    return new DeltaTemplate(kinds, literals, literalsOf(sent, sentFields));
  }

  /** The same of a frame that was written here. */
  static ofOwn(frame: Buffer, varying: Varying): DeltaTemplate | undefined {
    const fields = fieldsOf(frame, varying);
    const kinds = fields?.map(({ kind }) => kind);
    const literals = fields && literalsOf(frame, fields);
    return literals && kinds && new DeltaTemplate(kinds, literals, literals);
  }

  /** Whether the client gets other bytes than came: those of `write`. */
  get isRewritten(): boolean {
    return this.#written !== undefined;
  }

  /** What the client gets of a run, where it gets other bytes than came. @param bytes those in which it was found. */
  written(bytes: Uint8Array, run: DeltaRun): Buffer {
    const literals = this.#written ?? [];
    const kept = run.end - run.start - run.deltas * this.#literalBytes;
    const into = Buffer.allocUnsafe(run.deltas * sizeOf(literals) + kept);
    let next = 0;
    let place = 0;
    for (let delta = 0; delta < run.deltas; delta++) {
      for (const [index, literal] of literals.entries()) {
        into.set(literal, next);
        next += literal.length;
        if (index === this.#kinds.length) break;
        const end = run.places[place + 1] as number;
        // Texts are short: a loop is done before a call has begun to copy.
        for (let from = run.places[place] as number; from < end; from++) into[next++] = bytes[from] as number;
        place += 2;
      }
    }
    return into;
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
    const literals = this.#written ?? [];
    let next = at;
    for (let i = 0; i < literals.length; i++) {
      const literal = literals[i] as Uint8Array;
      into.set(literal, next);
      next += literal.length;
      const kind = this.#kinds[i];
      if (kind === TEXT) for (let from = start; from < end; from++) into[next++] = source[from] as number;
      else if (kind === NUMBER) {
        const digits = String(number);
        for (let digit = 0; digit < digits.length; digit++) into[next++] = digits.charCodeAt(digit);
      }
    }
    return next;
  }

  /** Whether a whole frame is such a frame. @param mayEscape also where its text has escapes. */
  fits(frame: Uint8Array, mayEscape: boolean): boolean {
    return this.#match(frame, viewOf(frame), 0, 0, mayEscape) === frame.length;
  }

  /**
   * Looks for frames of this kind.
   * @param strict texts that are not UTF-8 are no match.
   * @returns the run that begins at `from`, until the next one is looked for; undefined where none does.
   */
  run(bytes: Uint8Array, from: number, strict: boolean): DeltaRun | undefined {
    const view = viewOf(bytes);
    const stride = this.#stride;
    const textAt = this.#textAt;
    let end = from;
    let deltas = 0;
    let textBytes = 0;
    let all = 0;
    for (; deltas < RUN_DELTAS_MAX; deltas++) {
      const place = deltas * stride;
      const next = this.#match(bytes, view, end, place, false);
      if (next < 0) break;
      const start = RUN.places[place + textAt] as number;
      const textEnd = RUN.places[place + textAt + 1] as number;
      let bits = 0;
      for (let at = start; at < textEnd; at++) bits |= bytes[at] as number;
      if (strict && bits >= ASCII_END && !isUtf8(bytes.subarray(start, textEnd))) break;
      textBytes += textEnd - start;
      all |= bits;
      end = next;
    }
    if (deltas === 0) return undefined;
    RUN.start = from;
    RUN.end = end;
    RUN.deltas = deltas;
    RUN.textBytes = textBytes;
    RUN.isAscii = all < ASCII_END;
    RUN.stride = stride;
    RUN.textAt = textAt;
    const numberAt = this.#numberAt;
    RUN.number = numberAt === undefined ? undefined : numberIn(bytes, (deltas - 1) * stride + numberAt);
    return RUN;
  }

  /**
   * @param place where the places of its varying parts are put.
   * @returns where the frame that begins at `from` ends; -1 when it is not such a frame, or not all there.
   */
  #match(bytes: Uint8Array, view: DataView, from: number, place: number, mayEscape: boolean): number {
    const { places } = RUN;
    const pattern = this.#pattern;
    let at = from;
    let next = 0;
    for (let i = place; ; i += 2) {
      const end = at + (pattern[next] as number);
      if (end > bytes.length) return -1;
      const last = next + 1 + wordsOf(pattern[next] as number);
      const mask = pattern[next + 1] as number;
      for (next += 2; next < last; next++, at += WORD_BYTES) {
        if (view.getInt32(at, true) !== pattern[next]) return -1;
      }
      if ((view.getInt32(end - WORD_BYTES, true) & mask) !== pattern[last]) return -1;
      const kind = pattern[last + 1];
      if (kind === END) return end;
      at = kind === NUMBER ? endOfNumber(bytes, end) : endOfString(bytes, end, mayEscape);
      if (at < 0) return -1;
      places[i] = end;
      places[i + 1] = at;
      next = last + 2;
    }
  }
}

/** The last word of a literal is its last four bytes, some of which may be those of the word before it. */
function patternOf(kinds: readonly TemplateField["kind"][], literals: readonly Uint8Array[]): Int32Array {
  const pattern: number[] = [];
  for (const [index, literal] of literals.entries()) {
    const { length } = literal;
    // A shorter one is looked at with the bytes in front of it, masked out; the first of a frame is longer (`data: {"`).
    const view = viewOf(Buffer.concat([Buffer.alloc(WORD_BYTES), literal]));
    const mask = length < WORD_BYTES ? -1 << (8 * (WORD_BYTES - length)) : -1;
    pattern.push(length, mask);
    for (let at = WORD_BYTES; at < length; at += WORD_BYTES) pattern.push(view.getInt32(at, true));
    pattern.push(view.getInt32(length, true) & mask, kinds[index] ?? END);
  }
  return Int32Array.from(pattern);
}

function wordsOf(bytes: number): number {
  return Math.ceil(bytes / WORD_BYTES);
}

function sizeOf(literals: readonly Uint8Array[]): number {
  return literals.reduce((sum, { length }) => sum + length, 0);
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** @returns -1 where it is none, has escapes that it may not have, or is not all there. An empty text is no output. */
function endOfString(bytes: Uint8Array, from: number, mayEscape: boolean): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) return at === from ? -1 : at;
    if (byte < SPACE || (byte === BACKSLASH && !mayEscape)) return -1;
    if (byte === BACKSLASH) at++;
  }
  return -1;
}

function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isDigit(bytes[at]) && at - from < DIGITS_MAX) at++;
  return at === from || (bytes[from] === DIGIT_0 && at - from > 1) ? -1 : at;
}

/** @param place where the list of places has that of the number. */
function numberIn(bytes: Uint8Array, place: number): number {
  const end = RUN.places[place + 1] as number;
  let value = 0;
  for (let at = RUN.places[place] as number; at < end; at++) value = value * 10 + ((bytes[at] as number) - DIGIT_0);
  return value;
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

function literalsOf(frame: Buffer, fields: readonly TemplateField[]): readonly Uint8Array[] {
  const ends = [...fields.map(({ start }) => start), frame.length];
  return ends.map((end, index) => frame.subarray(fields[index - 1]?.end ?? 0, end));
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
