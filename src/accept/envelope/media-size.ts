/**
 * The most tokens that one image, file or sound in base64 can cost, by the rules that vendors publish
 * (docs/decisions/a-hold-follows-what-is-held.md). The client controls both the size in the header and the number of
 * bytes, so neither is trusted unless the other one agrees.
 */
import { isUtf8 } from "node:buffer";
import { textOf } from "../../values/json-object.ts";
import type { MediaPiece } from "../../values/members/envelope.ts";
import { charsetOf, decodeCharset, isReadAsUtf8 } from "../../wire/charset.ts";
import { IMAGE_HEAD_BYTES, imageSize } from "./image-size.ts";
import { isPdf, pdfSize, type ReadingBudget } from "./pdf-size.ts";
import { textTokens } from "./text-density.ts";
import { endsAsZip, isZip, ZIP_END_BYTES, zipTokens } from "./zip-size.ts";

interface Base64Text {
  readonly text: string;
  readonly bytes: number;
  /** The charset of the text if it is not read as UTF-8; undefined otherwise. */
  readonly charset: string | undefined;
}

/**
 * Bare base64, or that of a data URL; undefined for addresses and everything else. Every character is checked, because
 * otherwise text could pass as media and bypass the estimate.
 */
export function base64Of(value: unknown, mediaType: unknown): Base64Text | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  const comma = value.startsWith("data:") ? value.slice(0, DATA_URL_HEAD_CHARS_MAX).indexOf(",") : -1;
  const text = comma === -1 ? value : value.slice(comma + 1);
  if (NOT_BASE64.test(text)) return undefined;
  const named = charsetOf(comma === -1 ? (textOf(mediaType) ?? "") : value.slice(0, comma));
  return { text, bytes: Buffer.byteLength(text, "base64"), charset: isReadAsUtf8(named) ? undefined : named };
}

const DATA_URL_HEAD_CHARS_MAX = 256;
// Looks for one character and never backtracks: `^[...]+$` would need a stack as long as the text.
const NOT_BASE64 = /[^A-Za-z0-9+/_=-]/;

function decoded({ text }: Base64Text, bytesMax: number): Buffer {
  return Buffer.from(text.slice(0, Math.ceil(bytesMax / 3) * 4), "base64");
}

function decodedTail({ text }: Base64Text, bytesMax: number): Buffer {
  // Starts at a complete group of four characters, so that the decoded bytes are those of the file.
  const from = Math.max(0, text.length - Math.ceil(bytesMax / 3) * 4 - 4);
  return Buffer.from(text.slice(from - (from % 4)), "base64");
}

/**
 * Bytes of a file's text per token: the default of `input_bytes_per_token`. The model's own value is not known here.
 */
const TEXT_BYTES_PER_TOKEN = 3;

export function pieceOf(
  kind: MediaPiece["kind"],
  encoded: Base64Text,
  hint: "audio" | undefined,
  budget: ReadingBudget,
): MediaPiece {
  const piece = pieceByHead(kind, encoded, hint, budget);
  if (kind === "image" || piece.tokens === undefined || !endsAsZip(decodedTail(encoded, ZIP_END_BYTES))) return piece;
  // Servers decide by the file name from the client whether to read it as ZIP.
  const asZip = zipTokens(decoded(encoded, encoded.bytes), budget);
  return { kind: piece.kind, tokens: asZip === undefined ? undefined : Math.max(piece.tokens, asZip) };
}

/** Judges the piece by its first bytes. */
function pieceByHead(
  kind: MediaPiece["kind"],
  encoded: Base64Text,
  hint: "audio" | undefined,
  budget: ReadingBudget,
): MediaPiece {
  const head = decoded(encoded, IMAGE_HEAD_BYTES[0]);
  if (isPdf(head)) return { kind: "file", tokens: pdfTokens(decoded(encoded, encoded.bytes), budget) };
  const format = imageFormat(head);
  if (format !== undefined) return { kind: "image", tokens: imageTokens(encoded, format) };
  if (hint === "audio" || isSound(head)) return { kind: "file", tokens: soundTokens(encoded, head) };
  if (kind === "image") return { kind, tokens: undefined };
  // 0, because pieceOf counts the contents of a ZIP file from its end. Without that end it cannot be read.
  if (isZip(head)) return { kind, tokens: endsAsZip(decodedTail(encoded, ZIP_END_BYTES)) ? 0 : undefined };
  // Other compressed formats may expand to a thousand times their size.
  return { kind, tokens: isText(head) ? tokensOfText(encoded, budget) : undefined };
}

/**
 * Tokens as UTF-8 and, if the charset is another one, as that charset: how the text is decoded depends on the route.
 * Takes the larger count. A byte that is invalid in its charset counts as one character of three bytes.
 */
function tokensOfText(encoded: Base64Text, budget: ReadingBudget): number {
  const bytes = decoded(encoded, encoded.bytes);
  const tokens = textTokens(bytes, budget);
  const isAsWritten = encoded.charset === undefined && isUtf8(bytes);
  const text = isAsWritten ? undefined : decodeCharset(bytes, encoded.charset);
  return text === undefined ? tokens : Math.max(tokens, textTokens(Buffer.from(text), budget));
}

/**
 * Text and image of each page. The highest published figures are 1,500 to 3,000 tokens of text and one image, which
 * costs 1,600 tokens at the size at which pages are rendered.
 */
const PAGE_TOKENS = 3_000 + 1_600;

function pdfTokens(pdf: Buffer, budget: ReadingBudget): number | undefined {
  const size = pdfSize(pdf, budget);
  return size && Math.max(size.pages * PAGE_TOKENS, Math.ceil(size.textBytes / TEXT_BYTES_PER_TOKEN));
}

/**
 * Edge in pixels of the square that costs one token. Smaller than that of each vendor (28; 32 at up to 1.4 tokens; 768
 * at 258).
 */
const PATCH_PX = 27;
/**
 * A JPEG of ordinary quality has a quarter of a byte per pixel. If there are more bytes, the image may be larger than
 * its header says.
 */
const BYTES_PER_IMAGE_TOKEN = 200;
/**
 * Maximum that is derived from the number of bytes alone: more than any vendor charges for 12 megapixels (14,364 is the
 * most seen).
 */
const IMAGE_TOKENS_BY_BYTES_MAX = 16_384;

/**
 * Tokens of an image that is enlarged before a model sees it.
 * @param pixels NaN if they are not known.
 */
export function enlargedTokens(pixels: number): number {
  const tokens = pixels >= 0 ? Math.ceil(pixels / PATCH_PX ** 2) : IMAGE_TOKENS_BY_BYTES_MAX;
  return Math.min(tokens, IMAGE_TOKENS_BY_BYTES_MAX);
}

type ImageFormat = "measured" | "unmeasured";

/** Whether these are the first bytes of an image, and whether its size can be read. */
function imageFormat(head: Buffer): ImageFormat | undefined {
  const start = head.toString("latin1", 0, 16);
  if (/^(?:\x89PNG|\xff\xd8\xff|GIF8|RIFF[\s\S]{4}WEBP)/.test(start)) return "measured";
  return /^(?:BM|II\*\0|MM\0\*|[\s\S]{4}ftyp(?:avi|hei|hev|mif|msf))/.test(start) ? "unmeasured" : undefined;
}

function imageTokens(encoded: Base64Text, format: ImageFormat): number | undefined {
  if (format === "unmeasured") return undefined;
  for (const bytesMax of IMAGE_HEAD_BYTES) {
    const size = imageSize(decoded(encoded, bytesMax));
    if (size) {
      const byPixels = Math.ceil(size.width / PATCH_PX) * Math.ceil(size.height / PATCH_PX);
      const byBytes = Math.min(IMAGE_TOKENS_BY_BYTES_MAX, Math.ceil(encoded.bytes / BYTES_PER_IMAGE_TOKEN));
      return Math.max(byPixels, byBytes);
    }
    if (bytesMax >= encoded.bytes) break;
  }
  return undefined;
}

/** The highest rate that a vendor publishes for audio input. */
const SOUND_TOKENS_PER_S = 32;
/** Lowest rate of MP3 (8 kbit/s), and highest rate of plain samples in common quality. */
const MP3_BYTES_PER_S = 1_000;
const SAMPLED_BYTES_PER_S = 192_000;

function isSound(head: Buffer): boolean {
  return /^(?:RIFF[\s\S]{4}WAVE|ID3|OggS|fLaC|\xff[\xe2-\xfb])/.test(head.toString("latin1", 0, 12));
}

/** Undefined for codecs in which an hour of silence takes a few kilobytes (FLAC, Ogg, AAC, MP4, WebM). */
function soundTokens(encoded: Base64Text, head: Buffer): number | undefined {
  const { bytes } = encoded;
  // The format chunk must come first. In other files, something would have to be skipped that could be mistaken for it.
  const isSampled = /^RIFF[\s\S]{4}WAVEfmt /.test(head.toString("latin1", 0, 16)) && head.length >= 36;
  // Sample rate and size come from the header, from which vendors compute the seconds that they charge for. They are
  // capped at the rate of real recordings. Decoders disagree on which field gives the sample size, so the longer
  // duration counts.
  const frame = isSampled ? Math.min(head.readUInt16LE(32), (head.readUInt16LE(22) * head.readUInt16LE(34)) >> 3) : 0;
  const bySamples = isSampled && head.readUInt16LE(20) === 1 ? head.readUInt32LE(24) * frame : 0;
  const declared = Math.min(bySamples, (isSampled && head.readUInt32LE(28)) || bySamples);
  if (declared > 0) return Math.ceil((bytes / Math.min(declared, SAMPLED_BYTES_PER_S)) * SOUND_TOKENS_PER_S);
  return isMp3(encoded, head) ? Math.ceil((bytes / MP3_BYTES_PER_S) * SOUND_TOKENS_PER_S) : undefined;
}

const TAG_BYTES = 10;

/** Whether an MP3 frame begins here, or after the tag with which many such files begin (ID3v2.4 section 3.1). */
function isMp3(encoded: Base64Text, head: Buffer): boolean {
  const isTagged = head.toString("latin1", 0, 3) === "ID3" && head.length >= TAG_BYTES;
  if (!isTagged) return isMp3Frame(head, 0);
  const [a = 0, b = 0, c = 0, d = 0] = head.subarray(6, TAG_BYTES);
  const frame = TAG_BYTES + ((a << 21) | (b << 14) | (c << 7) | d);
  return frame < encoded.bytes && isMp3Frame(decoded(encoded, frame + 2), frame);
}

/** Checks the eleven sync bits of a frame, an existing version, and layer III. */
function isMp3Frame(bytes: Buffer, at: number): boolean {
  const [first, second = 0] = bytes.subarray(at, at + 2);
  return first === 0xff && (second & 0xe6) === 0xe2 && (second & 0x18) !== 0x08;
}

/** Text has no control characters except those of lines; compressed data has many. */
function isText(head: Buffer): boolean {
  for (const byte of head) if (byte < 0x09 || (byte > 0x0d && byte < 0x20 && byte !== 0x1b)) return false;
  return head.length > 0;
}
