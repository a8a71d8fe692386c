/** Cursors that say more than a name: a short list of texts, as one word that goes into a URL as it is. */

/** Characters of a cursor at most. */
export const CURSOR_CHARS_MAX = 1_024;

export function writeCursor(texts: readonly string[]): string {
  return Buffer.from(JSON.stringify(texts)).toString("base64url");
}

/** @returns undefined for what `writeCursor` did not write with this many texts. */
export function readCursor(cursor: string, count: number): readonly string[] | undefined {
  try {
    const texts: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    const isOne = Array.isArray(texts) && texts.length === count && texts.every((text) => typeof text === "string");
    return isOne && writeCursor(texts) === cursor ? texts : undefined;
  } catch {
    return undefined;
  }
}
