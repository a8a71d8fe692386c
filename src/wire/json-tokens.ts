/**
 * The tokens of JSON (RFC 8259) at the level of bytes. Each function starts at a token's first byte and returns the
 * position one past its last byte; for invalid JSON, it returns `faultAt(position)`, a negative number.
 */
import { asBuffer } from "./utf8.ts";

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_ARRAY = 0x5b;
export const CLOSE_ARRAY = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;
export const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const LETTER_U = 0x75;

/** Encodes the position of a fault. */
export function faultAt(position: number): number {
  return -1 - position;
}

/** Decodes the position from `faultAt`. */
export function faultPosition(fault: number): number {
  return -1 - fault;
}

/** The first position from `at` on that is not JSON white space; `stop` if there is none before it. */
export function skipSpace(bytes: Uint8Array, at: number, stop = bytes.length): number {
  let i = at;
  while (i < stop) {
    const byte = bytes[i] as number;
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
    i++;
  }
  return i;
}

/** Skips a string from its opening quote. No raw control characters, and only the escapes of RFC 8259 section 7. */
export function skipString(bytes: Uint8Array, at: number): number {
  const { length } = bytes;
  const i = skipInString(bytes, at + 1, length);
  if (i < 0) return i;
  return bytes[i] === QUOTE ? i + 1 : faultAt(length);
}

/**
 * Continues inside a string, from a position that is not in an escape.
 * @returns the closing quote's position; or a position at or just after `stop` from which to continue.
 */
export function skipInString(bytes: Uint8Array, at: number, stop: number): number {
  let i = at;
  for (;;) {
    // A table is three times as fast as comparisons, because the positions of spaces defeat branch prediction.
    while (i < stop && IS_PLAIN[bytes[i] as number] === 1) i++;
    if (i >= stop || bytes[i] === QUOTE) return i;
    if (bytes[i] !== BACKSLASH) return faultAt(i);
    i = skipEscape(bytes, i);
    if (i < 0) return i;
  }
}

/** This many bytes of a string are read one by one; after that, a search for its end is many times as fast. */
const NEAR_BYTES = 48;

/** Skips a string in a valid text, from its opening quote. */
export function skipKnown(bytes: Uint8Array, at: number): number {
  // Most strings are short, and checking whether the bytes are a Buffer takes longer than reading those.
  const near = at + NEAR_BYTES;
  let i = at + 1;
  while (i < near && IS_PLAIN[bytes[i] as number] === 1) i++;
  if (bytes[i] === QUOTE) return i + 1;
  const end = endOfString(asBuffer(bytes), i);
  return end < 0 ? faultAt(bytes.length) : end + 1;
}

/**
 * The closing quote of a string in a valid body, from a position in it that is not in an escape; -1 if there is none
 * after all.
 */
export function endOfString(bytes: Buffer, at: number): number {
  let i = at;
  let near = i + NEAR_BYTES;
  for (;;) {
    for (; i < near; i++) {
      const byte = bytes[i];
      if (byte === BACKSLASH) i++;
      else if (byte === QUOTE) return i;
    }
    const quote = bytes.indexOf(QUOTE, i);
    if (quote < 0) return quote;
    // The backslashes before the quote decide whether it ends the string. No escape begins before `i`. A long run of
    // backslashes is read byte by byte.
    const least = Math.max(i, quote - NEAR_BYTES);
    let row = quote;
    while (row > least && bytes[row - 1] === BACKSLASH) row--;
    if (row === least && least > i) {
      near = quote + 1;
      continue;
    }
    if ((quote - row) % 2 === 0) return quote;
    i = quote + 1;
    near = i + NEAR_BYTES;
  }
}

function skipEscape(bytes: Uint8Array, at: number): number {
  const byte = bytes[at + 1] ?? 0;
  if (SHORT_ESCAPES[byte] === 1) return at + 2;
  if (byte !== LETTER_U) return faultAt(at);
  for (let i = at + 2; i < at + 6; i++) if (HEX_DIGITS[bytes[i] ?? 0] !== 1) return faultAt(at);
  return at + 6;
}

/**
 * Skips a number: minus, whole part without leading zeros, fraction, exponent. Its digits are not read beyond `stop`.
 */
function skipNumber(bytes: Uint8Array, at: number, stop: number): number {
  let i = bytes[at] === MINUS ? at + 1 : at;
  const whole = i;
  i = skipDigits(bytes, i, stop);
  if (i === whole || (bytes[whole] === ZERO && i > whole + 1)) return faultAt(whole);
  if (bytes[i] === POINT) {
    const fraction = i + 1;
    i = skipDigits(bytes, fraction, stop);
    if (i === fraction) return faultAt(i);
  }
  if (((bytes[i] ?? 0) | 0x20) !== 0x65) return i;
  i++;
  if (bytes[i] === PLUS || bytes[i] === MINUS) i++;
  const exponent = i;
  i = skipDigits(bytes, exponent, stop);
  return i === exponent ? faultAt(i) : i;
}

function skipDigits(bytes: Uint8Array, at: number, stop: number): number {
  let i = at;
  while (i < stop && (bytes[i] as number) >= ZERO && (bytes[i] as number) <= NINE) i++;
  return i;
}

/**
 * Skips a string, a number (its digits are not read beyond `stop`), `true`, `false` or `null`; anything else is a
 * fault.
 */
export function skipScalar(bytes: Uint8Array, at: number, stop = bytes.length): number {
  const byte = bytes[at];
  if (byte === QUOTE) return skipString(bytes, at);
  const literal = LITERALS[byte ?? 0];
  if (literal === undefined) return skipNumber(bytes, at, stop);
  for (let i = 0; i < literal.length; i++) if (bytes[at + i] !== literal[i]) return faultAt(at);
  return at + literal.length;
}

/** Decodes the string token in [start, end), quotes included, which must be valid and in UTF-8. */
export function decodeString(bytes: Buffer, start: number, end: number): string {
  const text = bytes.toString("utf8", start + 1, end - 1);
  return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
}

/** Bytes that stand for themselves in a string: all except quote, backslash and control characters. */
const IS_PLAIN = new Uint8Array(256).fill(1);
IS_PLAIN.fill(0, 0, 0x20);
IS_PLAIN[QUOTE] = 0;
IS_PLAIN[BACKSLASH] = 0;

const SHORT_ESCAPES = tableOf('"\\/bfnrt');
const HEX_DIGITS = tableOf("0123456789abcdefABCDEF");

const LITERALS: (Uint8Array | undefined)[] = new Array(256).fill(undefined);
for (const word of ["true", "false", "null"]) LITERALS[word.charCodeAt(0)] = Buffer.from(word);

function tableOf(characters: string): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of Buffer.from(characters)) table[byte] = 1;
  return table;
}
