/** Text in the charset of its media type (RFC 2046 section 4.1.2; names of the Encoding Standard). */
import { asBuffer } from "./utf8.ts";

const CHARSET = /;\s*charset\s*=\s*"?([^;",\s]+)/i;

/** The charset parameter of a media type, in lowercase; undefined if there is none. */
export function charsetOf(mediaType: string): string | undefined {
  return CHARSET.exec(mediaType)?.[1]?.toLowerCase();
}

/** Charsets that are read as UTF-8: ASCII is part of it, and some programs label any text as ASCII. */
const UTF8: ReadonlySet<string | undefined> = new Set([undefined, "utf-8", "utf8", "us-ascii", "ascii"]);

/** Whether text of this charset is read as UTF-8. */
export function isReadAsUtf8(charset: string | undefined): boolean {
  return UTF8.has(charset);
}

/**
 * @param charset undefined: UTF-8.
 * @returns the text; undefined if the charset is not known here. Bytes that are invalid in it become U+FFFD.
 */
export function decodeCharset(bytes: Uint8Array, charset: string | undefined): string | undefined {
  if (isReadAsUtf8(charset)) return asBuffer(bytes).toString("utf8");
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return undefined;
  }
}
