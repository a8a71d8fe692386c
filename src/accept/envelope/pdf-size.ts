/**
 * Upper estimate of how much there is to read in a PDF: its pages and the text that it shows. Page objects and text are
 * usually in compressed streams, so these are decompressed within a budget. A file that cannot be read never counts as
 * small. This does not interpret the PDF: a file made to mislead (text drawn repeatedly by nested forms, text declared
 * as an image) can show more than is found here.
 */
import { constants, inflateSync } from "node:zlib";

interface PdfSize {
  readonly pages: number;
  /** Bytes of the strings in its streams: the text that it can show, in any encoding. */
  readonly textBytes: number;
}

/** Limits on the work for all files of one request. At most some 100 ms; what exceeds it is not read. */
export interface ReadingBudget {
  /** Files, images and audio that may be read; each costs some 20 us. */
  files: number;
  /** Bytes that decompression may produce, or that may be searched for the end of a stream. */
  bytes: number;
  /**
   * Occurrences of the word `stream` (some 20 us each) and of page names (some 1 us each) that may be examined, however
   * small they are.
   */
  streams: number;
  names: number;
  /** Samples of text that may be examined (text-density.ts); each costs some 2 us. */
  windows: number;
}

export function readingBudget(): ReadingBudget {
  return { files: 3_000, bytes: 8 * 1024 * 1024, streams: 2_000, names: 100_000, windows: 500 };
}

/** Whether these are the first bytes of a PDF. PDF readers accept the signature anywhere in the first kilobyte. */
export function isPdf(head: Buffer): boolean {
  return head.subarray(0, 1_024).includes("%PDF-");
}

/** Pages and text; undefined if the file hides them: encrypted, compressed in a rare format, or beyond the budget. */
export function pdfSize(pdf: Buffer, budget: ReadingBudget): PdfSize | undefined {
  const pages = countPages(pdf, budget);
  if (pages === undefined) return undefined;
  const found = { pages, textBytes: 0 };
  for (const stream of streamsOf(pdf)) {
    if (budget.streams-- <= 0) return undefined;
    if (stream === "end") continue;
    const read = readStream(stream.dictionary, pdf.subarray(stream.start), budget);
    if (read === "hidden") return undefined;
    if (read === "no text") continue;
    const inside = countPages(read, budget);
    if (inside === undefined) return undefined;
    found.pages += inside;
    found.textBytes += stringBytes(read);
  }
  return found.pages > 0 ? found : undefined;
}

/** How many bytes before a stream are searched for its dictionary. */
const DICTIONARY_BYTES_MAX = 4_096;

/** Every occurrence of the word `stream`: a dictionary and start where a stream begins, and `end` for all others. */
function* streamsOf(pdf: Buffer): Generator<{ readonly dictionary: string; readonly start: number } | "end"> {
  for (let at = pdf.indexOf("stream"); at >= 0; at = pdf.indexOf("stream", at + 6)) {
    const next = at + 6;
    const lineEnd = pdf[next] === 0x0d && pdf[next + 1] === 0x0a ? 2 : pdf[next] === 0x0a || pdf[next] === 0x0d ? 1 : 0;
    const isEnd = pdf[at - 1] === 0x64 && pdf[at - 2] === 0x6e && pdf[at - 3] === 0x65;
    if (lineEnd === 0 || isEnd) {
      yield "end";
      continue;
    }
    const before = pdf.toString("latin1", Math.max(0, at - DICTIONARY_BYTES_MAX), at);
    const from = before.lastIndexOf("obj");
    yield { dictionary: plainNames(from < 0 ? before : before.slice(from)), start: next + lineEnd };
  }
}

/** Names may spell any character as #xx (ISO 32000-1, 7.3.5). */
function plainNames(text: string): string {
  return text.replace(/#([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

// Lists do not nest in this pattern: with nesting, each of many unclosed lists would be searched to the end.
const FILTER = /\/(?:Filter|F)\s*(\[[^[\]]*\]|\/[^\s/<>[\]()%]+)/y;
/** Maximum of names in one dictionary that begin like the filter's name; no program writes this many. */
const FILTERS_MAX = 64;

/** The filters of a stream; empty if it has none, undefined if too many names look like a filter. */
function filterOf(dictionary: string): string | undefined {
  let at = dictionary.indexOf("/F");
  for (let met = 0; at >= 0; at = dictionary.indexOf("/F", at + 2)) {
    if (met++ === FILTERS_MAX) return undefined;
    FILTER.lastIndex = at;
    const found = FILTER.exec(dictionary)?.[1];
    if (found !== undefined) return found;
  }
  return "";
}

/** Filters whose output is an image: what follows them cannot be text. */
const PICTURES = /\/(?:DCTDecode|DCT|JPXDecode|CCITTFaxDecode|CCF|JBIG2Decode)\b/;
const ASCII85 = /^\[?\s*\/(?:ASCII85Decode|A85)\b/;
const FLATE = /^\[?\s*(?:\/(?:ASCII85Decode|A85)\s*)?\/(?:FlateDecode|Fl)\s*\]?$/;
/** Marks that declare a stream an image, a font, a color profile or a table of the file. */
const NO_TEXT =
  /\/Subtype\s*\/(?:Image|Type1C|CIDFontType0C|OpenType|XML)\b|\/Type\s*\/XRef\b|\/Length1\b|\/Alternate\b/;

function readStream(dictionary: string, data: Buffer, budget: ReadingBudget): Buffer | "hidden" | "no text" {
  const filter = filterOf(dictionary);
  if (filter === undefined) return "hidden";
  const packed = ASCII85.test(filter) ? ascii85(data, budget) : data;
  // A stream that can be decompressed is decompressed even if the dictionary disagrees: a comment may hide half of a
  // dictionary.
  const isFlate = FLATE.test(filter) || beginsDeflated(packed);
  const claimsNoText = PICTURES.test(filter) || NO_TEXT.test(dictionary);
  if (claimsNoText) {
    const sample = isFlate ? unpacked(packed.subarray(0, SAMPLE_BYTES), budget) : packed.subarray(0, SAMPLE_BYTES);
    if (sample === undefined || !looksLikeText(sample)) return "no text";
  }
  if (isFlate) return unpacked(packed, budget) ?? "hidden";
  if (filter !== "" && packed === data && !claimsNoText) return "hidden";
  const end = endWithin(packed, "endstream", budget);
  return end < 0 ? "hidden" : packed.subarray(0, end);
}

const SAMPLE_BYTES = 2_048;

/** The first two bytes of a zlib stream (RFC 1950, 2.2). */
function beginsDeflated(data: Buffer): boolean {
  return data.length > 2 && ((data[0] as number) & 0x0f) === 8 && data.readUInt16BE(0) % 31 === 0;
}

/** Position of a word within the bytes that the budget allows to search; -1 if it is not there. */
function endWithin(data: Buffer, word: string, budget: ReadingBudget): number {
  const within = data.subarray(0, Math.max(0, budget.bytes));
  const end = within.indexOf(word);
  budget.bytes -= end < 0 ? within.length : end;
  return end;
}

/** A stream ends where its compressed data ends; a length or end mark in the file may be false. */
function unpacked(data: Buffer, budget: ReadingBudget): Buffer | undefined {
  const unpack = (maxOutputLength: number) =>
    inflateSync(data, { maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH });
  return unpackedWithin(budget, data.length, unpack);
}

/** The most bytes that Deflate can produce from one byte (RFC 1951: 258 bytes from two bits). */
const UNPACKED_MAX = 1_032;

/**
 * Decompresses a stream; undefined if it exceeds the budget or is damaged. A failure does not report how much it had
 * produced, so it costs the most that is possible. Otherwise, each of a thousand streams could be decompressed up to
 * the budget.
 */
export function unpackedWithin(
  budget: ReadingBudget,
  packedBytes: number,
  unpack: (bytesMax: number) => Buffer,
): Buffer | undefined {
  if (budget.bytes <= 0) return undefined;
  try {
    const out = unpack(budget.bytes);
    budget.bytes -= out.length;
    return out;
  } catch {
    budget.bytes -= Math.min(budget.bytes, packedBytes * UNPACKED_MAX);
    return undefined;
  }
}

/** Decodes base-85 as in PostScript, up to its `~>`; other characters are skipped. */
function ascii85(data: Buffer, budget: ReadingBudget): Buffer {
  const end = endWithin(data, "~>", budget);
  const digits = data.subarray(0, Math.max(0, end));
  const out = Buffer.alloc(digits.length * 4 + 4);
  let length = 0;
  let group = 0;
  let count = 0;
  for (const byte of digits) {
    if (byte === 0x7a && count === 0) {
      length += 4;
      continue;
    }
    if (byte < 0x21 || byte > 0x75) continue;
    group = group * 85 + (byte - 0x21);
    if (++count < 5) continue;
    length = out.writeUInt32BE(group % 2 ** 32, length);
    group = 0;
    count = 0;
  }
  for (let i = count; count > 1 && i < 5; i++) group = group * 85 + 84;
  if (count > 1) length = out.writeUInt32BE(group % 2 ** 32, length) - (5 - count);
  return out.subarray(0, length);
}

/** Page descriptions consist mostly of visible characters; images and fonts do not. */
function looksLikeText(sample: Buffer): boolean {
  let visible = 0;
  for (const byte of sample) if ((byte >= 0x20 && byte < 0x7f) || byte === 0x0a || byte === 0x0d) visible++;
  return sample.length > 0 && visible > sample.length * 0.8;
}

/**
 * The larger of the number of page objects and the number of entries in the page tree, because one object may be listed
 * many times. Undefined if the lists of the tree are elsewhere.
 */
function countPages(bytes: Buffer, budget: ReadingBudget): number | undefined {
  let objects = 0;
  let listed = 0;
  // Byte by byte, at 1 ns each: a search for each of ten million slashes takes seconds.
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] !== SLASH || !mayBeCounted(bytes[at + 1], bytes[at + 2])) continue;
    if (budget.names-- <= 0) return undefined;
    const name = NAME.exec(plainNames(bytes.toString("latin1", at + 1, at + NAME_BYTES)))?.[0];
    if (name === "Page") objects++;
    if (name !== "Kids") continue;
    const open = bytes.subarray(at, at + NAME_BYTES).indexOf("[");
    const close = open < 0 ? -1 : bytes.indexOf("]", at);
    if (close < 0) return undefined;
    for (let i = at + open; i < close; i++) if (bytes[i] === LETTER_R) listed++; // Each reference ends in R.
    at = close;
  }
  return Math.max(objects, listed);
}

/** Whether a name begins like `Page` or `Kids`, or has #xx at its beginning. */
function mayBeCounted(first: number | undefined, second: number | undefined): boolean {
  if (first === HASH) return true;
  return (
    (first === 0x50 && (second === 0x61 || second === HASH)) || (first === 0x4b && (second === 0x69 || second === HASH))
  );
}

const SLASH = 0x2f;
const LETTER_R = 0x52;
const HASH = 0x23;
/** Room for a name of four letters, each written as #xx, and for what follows it. */
const NAME_BYTES = 24;
const NAME = /^[A-Za-z0-9]+/;

/**
 * Counts the bytes inside `(...)` and half of the characters inside `<...>`: all text that a page description can show.
 */
function stringBytes(content: Buffer): number {
  let shown = 0;
  let depth = 0;
  let hex = false;
  for (let i = 0; i < content.length; i++) {
    const byte = content[i];
    if (depth > 0) {
      if (byte === 0x5c) i++;
      else if (byte === 0x28) depth++;
      else if (byte === 0x29) depth--;
      shown += 1;
    } else if (byte === 0x28) {
      depth = 1;
    } else if (byte === 0x3c) {
      hex = content[i + 1] !== 0x3c;
      if (!hex) i++;
    } else if (byte === 0x3e) {
      hex = false;
    } else if (hex) {
      shown += 0.5;
    }
  }
  return Math.ceil(shown);
}
