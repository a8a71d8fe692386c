/** Cursors with more than one value: a short list of texts, encoded as one word that is safe in a URL. */

/** Maximum length of a cursor in characters. */
export const CURSOR_CHARS_MAX = 1_024;

export function writeCursor(texts: readonly string[]): string {
  return Buffer.from(JSON.stringify(texts)).toString("base64url");
}

/** @returns undefined unless `writeCursor` wrote it with this number of texts */
export function readCursor(cursor: string, count: number): readonly string[] | undefined {
  try {
    const texts: unknown = JSON.parse(Buffer.from(cursor, "base64url").toString());
    const isOne = Array.isArray(texts) && texts.length === count && texts.every((text) => typeof text === "string");
    return isOne && writeCursor(texts) === cursor ? texts : undefined;
  } catch {
    return undefined;
  }
}
