/**
 * Most text has three bytes to a token or more; digits, signs and noise have one. Where a body is long enough for that to
 * matter, its tokens are reckoned from places of it that nobody can foresee (docs/decisions/a-hold-follows-what-is-held.md).
 */
import { TextTokens } from "../../values/tokens/text.ts";

/** Shorter texts cost little however dense they are. */
const TEXT_BYTES_MIN = 4_096;
/** Looking at so much of a body takes some 30 us. */
const WINDOWS = 32;
const WINDOW_BYTES = 256;
/** By this much of a media string it is found in the body. */
const MARK_CHARS = 64;
/** Media is met from the end to the start, but for the order of the roots of a conversation. */
const WHOLE_SEARCHES_MAX = 4;

/** From, and up to (excluded). */
type Range = readonly [start: number, end: number];

/**
 * Tokens of the text of a body, reckoned from a sample of its characters.
 * @param media the strings in it that are media, in base64, from the last to the first as a rule.
 * @param chance from 0 to 1 (excluded), anew with each call.
 * @returns 0 where the text is short.
 */
export function sampledTokens(body: Uint8Array, media: readonly string[], chance: () => number): number {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const ranges = textRanges(bytes, media);
  const textBytes = ranges.reduce((sum, [start, end]) => sum + end - start, 0);
  if (textBytes < TEXT_BYTES_MIN) return 0;
  const tokens = new TextTokens();
  const stride = textBytes / WINDOWS;
  let seen = 0;
  for (let i = 0; i < WINDOWS; i++) {
    const at = placeOf(ranges, Math.floor((i + chance()) * stride));
    const window = bytes.subarray(at, Math.min(at + WINDOW_BYTES, bytes.length));
    tokens.add(textOf(window));
    seen += window.length;
  }
  return Math.ceil((tokens.tokens / seen) * textBytes);
}

/** What of a body is not media. Media that is not found, since it is written with escapes, is taken for text. */
function textRanges(bytes: Buffer, media: readonly string[]): readonly Range[] {
  const ranges: Range[] = [];
  let from = 0;
  for (const [start, end] of mediaRanges(bytes, media)) {
    if (start < from) continue;
    ranges.push([from, start]);
    from = end;
  }
  ranges.push([from, bytes.length]);
  return ranges;
}

function mediaRanges(bytes: Buffer, media: readonly string[]): readonly Range[] {
  const found: Range[] = [];
  let until = bytes.length;
  let searches = WHOLE_SEARCHES_MAX;
  for (const data of media) {
    const mark = data.slice(0, MARK_CHARS);
    let start = until < data.length ? -1 : bytes.lastIndexOf(mark, until - data.length, "latin1");
    if (start < 0 && searches-- > 0) start = bytes.lastIndexOf(mark, -data.length, "latin1");
    if (start < 0) continue;
    found.push([start, start + data.length]);
    until = start;
  }
  return found.sort(([a], [b]) => a - b);
}

function placeOf(ranges: readonly Range[], offset: number): number {
  let left = offset;
  for (const [start, end] of ranges) {
    if (left < end - start) return start + left;
    left -= end - start;
  }
  return 0;
}

/** The characters of a piece of JSON; half a character at its ends is left out. */
function textOf(window: Buffer): string {
  return window
    .toString("utf8")
    .replace(/^\ufffd+|\ufffd+$/g, "")
    .replace(/\\(?:u([0-9a-fA-F]{4})|(.))/g, unescaped);
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: " ", f: " " };

function unescaped(_: string, code: string | undefined, sign: string): string {
  return code === undefined ? (ESCAPES[sign] ?? sign) : String.fromCharCode(Number.parseInt(code, 16));
}
