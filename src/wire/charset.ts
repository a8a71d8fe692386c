/** Text in the charset that its media type names (RFC 2046 section 4.1.2; names of the Encoding Standard). */
import { asBuffer } from "./utf8.ts";

const CHARSET = /;\s*charset\s*=\s*"?([^;",\s]+)/i;

/** The charset among the parameters of a media type, in lower case; undefined where none is named. */
export function charsetOf(mediaType: string): string | undefined {
  return CHARSET.exec(mediaType)?.[1]?.toLowerCase();
}

/** What UTF-8 reads: ASCII is part of it, and is what some programs call any text. */
const UTF8: ReadonlySet<string | undefined> = new Set([undefined, "utf-8", "utf8", "us-ascii", "ascii"]);

/** Whether text of this charset is read as UTF-8. */
export function isReadAsUtf8(charset: string | undefined): boolean {
  return UTF8.has(charset);
}

/**
 * @param charset undefined: UTF-8.
 * @returns the text; undefined where nobody here knows the charset. Bytes that it does not have become U+FFFD.
 */
export function decodeCharset(bytes: Uint8Array, charset: string | undefined): string | undefined {
  if (isReadAsUtf8(charset)) return asBuffer(bytes).toString("utf8");
  try {
    return new TextDecoder(charset).decode(bytes);
  } catch {
    return undefined;
  }
}
