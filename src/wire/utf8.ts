/**
 * Strict UTF-8: invalid bytes are refused, never repaired. Streams need no decoder, because frames are cut from bytes,
 * and a whole frame never ends inside a character.
 */
import { isUtf8 } from "node:buffer";

/**
 * Decodes a whole text.
 * @returns undefined if the bytes are not valid UTF-8 (including overlong forms, surrogates and cut characters), or
 *   begin with a byte order mark (docs/failure-model.md row 51; RFC 8259 section 8.1).
 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  if (startsWithBom(bytes) || !isUtf8(bytes)) return undefined;
  return asBuffer(bytes).toString("utf8");
}

const BOM: readonly number[] = [0xef, 0xbb, 0xbf];

/** Whether the bytes begin with the UTF-8 byte order mark. */
export function startsWithBom(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}

/** Whether the bytes are too few to show whether a text begins with the mark. */
export function mayBecomeBom(bytes: Uint8Array): boolean {
  return bytes.length < BOM.length && bytes.every((byte, i) => byte === BOM[i]);
}

/** The bytes after a leading byte order mark; the same bytes if there is none. */
export function withoutBom(bytes: Uint8Array): Uint8Array {
  return startsWithBom(bytes) ? bytes.subarray(BOM.length) : bytes;
}

/** The same bytes with Buffer's methods; nothing is copied. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
