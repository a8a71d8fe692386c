/**
 * What of a body is not text: images, files and sound, each with the tokens that it can cost at most by the rules that
 * vendors publish (docs/decisions/a-hold-follows-what-is-held.md has them). A size that the client chose, in a header or
 * in bytes, is believed only where the other of the two agrees.
 */
import { isUtf8 } from "node:buffer";
import { inflateRawSync } from "node:zlib";
import { isObject, type JsonObject } from "../../values/json-object.ts";
import type { MediaPiece } from "../../values/members/envelope.ts";
import { charsetOf, decodeCharset, isReadAsUtf8 } from "../../wire/charset.ts";
import { type Met, member } from "./conversation.ts";
import { isPdf, pdfSize, type ReadingBudget, readingBudget, unpackedWithin } from "./pdf-size.ts";
import { textTokens } from "./text-density.ts";

/** Members that may hold media, or say where it is. */
export const MEDIA_NAMES: ReadonlySet<string> = new Set(
  "image_url input_audio file file_data file_url source audio_url video_url".split(" "),
);

/** Gathers the media of one body. */
export class MediaCount {
  readonly pieces: MediaPiece[] = [];
  /** Strings of the body that are media rather than text, in base64. */
  readonly places = new Map<object, string[]>();
  /** Bytes of these. */
  base64Bytes = 0;
  readonly #budget: ReadingBudget = readingBudget();

  /**
   * Looks at one object of the conversation.
   * @param mayWeigh whether it has one of `MEDIA_NAMES`.
   */
  see({ node, under }: Met, mayWeigh: boolean): void {
    const before = this.pieces.length;
    if (mayWeigh) this.#weigh(node);
    if (this.pieces.length > before || !PART_LISTS.has(under)) return;
    const kind = unmeasured(node);
    if (kind) this.#unknown(kind);
  }

  #weigh(node: JsonObject): void {
    const { image_url: image } = node;
    if (image !== undefined && image !== null) {
      if (isObject(image)) this.#add("image", image, "url");
      else this.#add("image", node, "image_url");
    }
    if (node.input_audio !== undefined) this.#add("file", node.input_audio, "data", "audio");
    if (isObject(node.file)) this.#add("file", node.file, "file_data");
    else if (node.type === "input_file") this.#add("file", node, "file_data");
    if (isObject(node.source)) this.#seeSource(node, node.source);
    if (node.audio_url !== undefined || node.video_url !== undefined) this.#unknown("file");
  }

  /** Text that calls itself a document is text, and what holds further parts is walked through. */
  #seeSource(node: JsonObject, source: JsonObject): void {
    if (source.type === "text" || source.type === "content") return;
    const kind = node.type === "image" ? "image" : "file";
    if (source.type === "base64") this.#add(kind, source, "data");
    else this.#unknown(kind);
  }

  #unknown(kind: MediaPiece["kind"]): void {
    this.pieces.push({ kind, tokens: undefined });
  }

  /** Counts a member once, in however many words the body says what it is. */
  #add(kind: MediaPiece["kind"], holder: unknown, name: string, hint?: "audio"): void {
    const data = member(holder, name);
    const encoded = this.#budget.files-- > 0 ? base64Of(data, member(holder, "media_type")) : undefined;
    if (encoded === undefined) {
      this.#unknown(kind);
      return;
    }
    this.pieces.push(pieceOf(kind, encoded, hint, this.#budget));
    const names = this.places.get(holder as object);
    if (names?.includes(name)) return;
    if (names) names.push(name);
    else this.places.set(holder as object, [name]);
    this.base64Bytes += (data as string).length;
  }
}

interface Base64Text {
  readonly text: string;
  readonly bytes: number;
  /** In which text is read where it is not read as UTF-8; undefined otherwise. */
  readonly charset: string | undefined;
}

/**
 * The base64 of a data URL, or bare base64; undefined for addresses and everything else. Every character is looked at:
 * otherwise text could be smuggled past the estimate as media.
 */
function base64Of(value: unknown, mediaType: unknown): Base64Text | undefined {
  if (typeof value !== "string" || value === "") return undefined;
  const comma = value.startsWith("data:") ? value.slice(0, DATA_URL_HEAD_CHARS_MAX).indexOf(",") : -1;
  const text = comma === -1 ? value : value.slice(comma + 1);
  if (NOT_BASE64.test(text)) return undefined;
  const named = charsetOf(comma === -1 ? String(mediaType) : value.slice(0, comma));
  return { text, bytes: Buffer.byteLength(text, "base64"), charset: isReadAsUtf8(named) ? undefined : named };
}

const DATA_URL_HEAD_CHARS_MAX = 256;
// Looks for one character and never backtracks: `^[...]+$` would need a stack as long as the text.
const NOT_BASE64 = /[^A-Za-z0-9+/_=-]/;

function decoded({ text }: Base64Text, bytesMax: number): Buffer {
  return Buffer.from(text.slice(0, Math.ceil(bytesMax / 3) * 4), "base64");
}

function decodedTail({ text }: Base64Text, bytesMax: number): Buffer {
  // From a whole group of four characters on, so that the bytes are the file's.
  const from = Math.max(0, text.length - Math.ceil(bytesMax / 3) * 4 - 4);
  return Buffer.from(text.slice(from - (from % 4)), "base64");
}

/** Bytes of one token of a file's text: the default of `input_bytes_per_token`, which is the model's and not known here. */
const TEXT_BYTES_PER_TOKEN = 3;

function pieceOf(
  kind: MediaPiece["kind"],
  encoded: Base64Text,
  hint: "audio" | undefined,
  budget: ReadingBudget,
): MediaPiece {
  const piece = pieceByHead(kind, encoded, hint, budget);
  if (kind === "image" || piece.tokens === undefined || !endsAsZip(decodedTail(encoded, ZIP_END_BYTES))) return piece;
  // What is read of it depends on the name that the client gave it.
  const asZip = zipTokens(decoded(encoded, encoded.bytes), budget);
  return { kind: piece.kind, tokens: asZip === undefined ? undefined : Math.max(piece.tokens, asZip) };
}

/** By its first bytes. */
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
  // 0: what is in it is counted by its end (pieceOf); without one it cannot be read.
  if (isZip(head)) return { kind, tokens: endsAsZip(decodedTail(encoded, ZIP_END_BYTES)) ? 0 : undefined };
  // What is packed in another way may be a thousand times its size.
  return { kind, tokens: isText(head) ? tokensOfText(encoded, budget) : undefined };
}

/**
 * As UTF-8, and in its charset if that is another one: who reads it how is the route's matter. A byte that its charset does not
 * have is read as one character of three bytes.
 */
function tokensOfText(encoded: Base64Text, budget: ReadingBudget): number {
  const bytes = decoded(encoded, encoded.bytes);
  const tokens = textTokens(bytes, budget);
  const isAsWritten = encoded.charset === undefined && isUtf8(bytes);
  const text = isAsWritten ? undefined : decodeCharset(bytes, encoded.charset);
  return text === undefined ? tokens : Math.max(tokens, textTokens(Buffer.from(text), budget));
}

/**
 * Text and picture of each page: the vendor that says most says 1,500 to 3,000 tokens of text and one image, which comes
 * to 1,600 tokens at the size in which pages are drawn.
 */
const PAGE_TOKENS = 3_000 + 1_600;

function pdfTokens(pdf: Buffer, budget: ReadingBudget): number | undefined {
  const size = pdfSize(pdf, budget);
  return size && Math.max(size.pages * PAGE_TOKENS, Math.ceil(size.textBytes / TEXT_BYTES_PER_TOKEN));
}

/** Pixels on the edge of what costs one token: below each vendor's own (28; 32 at up to 1.4 tokens; 768 at 258). */
const PATCH_PX = 27;
/** A JPEG of ordinary quality has a quarter of a byte for each pixel; what has more bytes may be larger than it says. */
const BYTES_PER_IMAGE_TOKEN = 200;
/** The most that is deduced from bytes alone: more than 12 megapixels cost anywhere (14,364 at the dearest seen). */
const IMAGE_TOKENS_BY_BYTES_MAX = 16_384;

type ImageFormat = "measured" | "unmeasured";

/** Whether these are the first bytes of an image, and of a kind whose size can be read. */
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

/** The dearest rate that a vendor publishes for sound input. */
const SOUND_TOKENS_PER_S = 32;
/** The least that a second takes in MP3 (8 kbit/s), and in plain samples of common quality at the most. */
const MP3_BYTES_PER_S = 1_000;
const SAMPLED_BYTES_PER_S = 192_000;

function isSound(head: Buffer): boolean {
  return /^(?:RIFF[\s\S]{4}WAVE|ID3|OggS|fLaC|\xff[\xe2-\xfb])/.test(head.toString("latin1", 0, 12));
}

/** Undefined for codecs in which an hour of silence takes a few kilobytes (FLAC, Ogg, AAC, MP4, WebM). */
function soundTokens(encoded: Base64Text, head: Buffer): number | undefined {
  const { bytes } = encoded;
  // Its format stands first, but for files in which something else is to be skipped, and could be taken for it.
  const isSampled = /^RIFF[\s\S]{4}WAVEfmt /.test(head.toString("latin1", 0, 16)) && head.length >= 36;
  // Rate and samples by the header, which also says how many seconds the vendor hears; but not faster than any recording.
  const said = isSampled && head.readUInt16LE(20) === 1 ? head.readUInt32LE(24) * head.readUInt16LE(32) : 0;
  if (said > 0) return Math.ceil((bytes / Math.min(said, SAMPLED_BYTES_PER_S)) * SOUND_TOKENS_PER_S);
  return isMp3(encoded, head) ? Math.ceil((bytes / MP3_BYTES_PER_S) * SOUND_TOKENS_PER_S) : undefined;
}

const TAG_BYTES = 10;

/** Whether a frame of MP3 begins here, or after the tag with which many such files begin (ID3v2.4 section 3.1). */
function isMp3(encoded: Base64Text, head: Buffer): boolean {
  const isTagged = head.toString("latin1", 0, 3) === "ID3" && head.length >= TAG_BYTES;
  if (!isTagged) return isMp3Frame(head, 0);
  const [a = 0, b = 0, c = 0, d = 0] = head.subarray(6, TAG_BYTES);
  const frame = TAG_BYTES + ((a << 21) | (b << 14) | (c << 7) | d);
  return frame < encoded.bytes && isMp3Frame(decoded(encoded, frame + 2), frame);
}

/** Eleven bits of a frame, a version that exists, and layer III. */
function isMp3Frame(bytes: Buffer, at: number): boolean {
  const [first, second = 0] = bytes.subarray(at, at + 2);
  return first === 0xff && (second & 0xe6) === 0xe2 && (second & 0x18) !== 0x08;
}

/** Text has no control characters but those of lines; what is packed has many. */
function isText(head: Buffer): boolean {
  for (const byte of head) if (byte < 0x09 || (byte > 0x0d && byte < 0x20 && byte !== 0x1b)) return false;
  return head.length > 0;
}

/** The members whose objects are messages, items and parts; other members hold sources and tools. */
const PART_LISTS: ReadonlySet<string> = new Set(["messages", "system", "input", "content", "output"]);

/** Types of messages, items, parts and blocks that are text, or that hold what is looked at by itself. */
const TEXT_TYPES: ReadonlySet<string> = new Set(
  `text input_text output_text refusal reasoning_text summary_text search_result thinking redacted_thinking reasoning
  tool_use tool_result server_tool_use web_search_tool_result web_fetch_tool_result web_fetch_result web_search_result
  advisor_tool_result advisor_result advisor_redacted_result code_execution_tool_result code_execution_result
  encrypted_code_execution_result code_execution_output bash_code_execution_tool_result bash_code_execution_result
  bash_code_execution_output text_editor_code_execution_tool_result text_editor_code_execution_view_result
  text_editor_code_execution_create_result text_editor_code_execution_str_replace_result tool_search_tool_result
  tool_search_tool_search_result mcp_tool_use mcp_tool_result mcp_tool_listing container_upload compaction
  compaction_trigger tool_addition tool_removal tool_reference browser_state fallback
  message file_search_call computer_call computer_call_output web_search_call function_call function_call_output
  tool_search_call tool_search_output additional_tools configuration_update image_generation_call
  code_interpreter_call local_shell_call local_shell_call_output shell_call shell_call_output apply_patch_call
  apply_patch_call_output mcp_list_tools mcp_approval_request mcp_approval_response mcp_call custom_tool_call
  custom_tool_call_output item_reference program program_output`.split(/\s+/),
);

const IMAGE_TYPES: ReadonlySet<string> = new Set(["image", "image_url", "input_image", "computer_screenshot"]);

/** What a part counts as when its members do not show it: nothing, an image, or a file, as every unknown kind does. */
function unmeasured({ type, source }: JsonObject): MediaPiece["kind"] | undefined {
  if (typeof type !== "string" || TEXT_TYPES.has(type) || type.endsWith("_error")) return undefined;
  if (IMAGE_TYPES.has(type)) return "image";
  return type === "document" && isObject(source) ? undefined : "file";
}

/*
 * How large an image is, from its first bytes: PNG, JPEG, GIF and WebP. What has another form, or hides its size, has
 * none here; nothing that a client sends makes it throw, and each look is bounded by the bytes that it is given.
 */

interface ImageSize {
  readonly width: number;
  readonly height: number;
}

/** Bytes that are looked at, more each time until a size is found; JPEGs with long profiles and previews need the most. */
const IMAGE_HEAD_BYTES = [4_096, 65_536, 1_048_576] as const;

/** The size in pixels; undefined when it is not to be found in these bytes. */
export function imageSize(head: Buffer): ImageSize | undefined {
  const size = readSize(head);
  return size && size.width > 0 && size.height > 0 ? size : undefined;
}

function readSize(head: Buffer): ImageSize | undefined {
  if (head.length < 30) return undefined;
  if (head.readUInt32BE(0) === 0x89504e47) return pngSize(head);
  if (head.readUInt16BE(0) === 0xffd8) return jpegSize(head);
  const name = head.toString("latin1", 0, 6);
  if (name === "GIF87a" || name === "GIF89a") return gifSize(head);
  return head.toString("latin1", 0, 4) === "RIFF" && head.toString("latin1", 8, 12) === "WEBP"
    ? webpSize(head)
    : undefined;
}

function pngSize(head: Buffer): ImageSize | undefined {
  if (head.toString("latin1", 12, 16) !== "IHDR") return undefined;
  return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) };
}

/** Segments up to the frame header (ITU-T T.81, B.1.1); previews lie inside other segments and are stepped over. */
function jpegSize(head: Buffer): ImageSize | undefined {
  let at = 2;
  while (at + 9 <= head.length) {
    if (head[at] !== 0xff) return undefined;
    const marker = head[at + 1] as number;
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { height: head.readUInt16BE(at + 5), width: head.readUInt16BE(at + 7) };
    const standsAlone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd7);
    if (!standsAlone && (marker < 0xc0 || marker === 0xd8 || marker === 0xd9 || marker === 0xda)) return undefined;
    at += standsAlone ? 2 : 2 + head.readUInt16BE(at + 2);
  }
  return undefined;
}

/** The first frame may be larger than the screen that the header names, so it is looked for. */
function gifSize(head: Buffer): ImageSize | undefined {
  const screen = { width: head.readUInt16LE(6), height: head.readUInt16LE(8) };
  const flags = head[10] as number;
  let at = 13 + (flags & 0x80 ? 3 * 2 ** ((flags & 0x07) + 1) : 0);
  while (at + 10 <= head.length) {
    if (head[at] === 0x2c) {
      const right = head.readUInt16LE(at + 1) + head.readUInt16LE(at + 5);
      const bottom = head.readUInt16LE(at + 3) + head.readUInt16LE(at + 7);
      return { width: Math.max(screen.width, right), height: Math.max(screen.height, bottom) };
    }
    if (head[at] !== 0x21) return undefined;
    at += 2;
    for (let length = head[at]; length !== undefined && length !== 0; length = head[at]) at += length + 1;
    at += 1;
  }
  return undefined;
}

function webpSize(head: Buffer): ImageSize | undefined {
  const kind = head.toString("latin1", 12, 16);
  if (kind === "VP8X") return { width: 1 + head.readUIntLE(24, 3), height: 1 + head.readUIntLE(27, 3) };
  if (kind === "VP8L") {
    const bits = head.readUInt32LE(21);
    return head[20] === 0x2f ? { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) } : undefined;
  }
  if (kind !== "VP8 " || head.readUIntBE(23, 3) !== 0x9d012a) return undefined;
  return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff };
}

/*
 * How much there is in a ZIP file (documents, sheets and slides of office programs are ZIP files), as an upper estimate: the
 * sizes that it names are the sender's to choose, so what it holds is unpacked, within a budget. A file that cannot be read is
 * not believed to be small. Source of the format: PKWARE APPNOTE.TXT 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16.
 */

const LOCAL_HEADER = 0x04034b50;
const LOCAL_HEADER_BYTES = 30;
const DIRECTORY_ENTRY = 0x02014b50;
const DIRECTORY_ENTRY_BYTES = 46;
const DIRECTORY_END = Buffer.from("PK\x05\x06", "latin1");
const DIRECTORY_END_BYTES = 22;
/** Says that the end before it, of a file of more than 4 GiB, is the one that counts. */
const LARGE_LOCATOR = Buffer.from("PK\x06\x07", "latin1");
/** The longest comment after the directory's end. */
const COMMENT_BYTES_MAX = 65_535;
const STORED = 0;
const DEFLATED = 8;

/** Whether these are the first bytes of a ZIP file. */
function isZip(head: Buffer): boolean {
  return head.length >= 4 && head.readUInt32LE(0) === LOCAL_HEADER;
}

/** Bytes at the end of a file within which a ZIP file has its directory's end. */
const ZIP_END_BYTES = DIRECTORY_END_BYTES + COMMENT_BYTES_MAX;

/**
 * Whether these last bytes of a file may be the end of a ZIP file. Readers find it by its end: what stands first is free, and
 * can be another format's mark.
 */
function endsAsZip(tail: Buffer): boolean {
  return tail.includes(DIRECTORY_END);
}

/** Tokens of all that is in the file, unpacked; undefined when it hides them: encrypted, packed in rare ways, damaged. */
function zipTokens(zip: Buffer, budget: ReadingBudget): number | undefined {
  try {
    return unpackedTokens(zip, budget);
  } catch {
    // Offsets beyond the file, or bytes that are not packed as they say.
    return undefined;
  }
}

function unpackedTokens(zip: Buffer, budget: ReadingBudget): number | undefined {
  const end = zip.lastIndexOf(DIRECTORY_END);
  if (end < 0 || end + DIRECTORY_END_BYTES + COMMENT_BYTES_MAX < zip.length) return undefined;
  // Readers differ in whom they believe: the last end or one before it, and the larger file's own.
  const tail = zip.subarray(Math.max(0, end - DIRECTORY_END_BYTES - COMMENT_BYTES_MAX), end);
  if (tail.includes(DIRECTORY_END) || tail.includes(LARGE_LOCATOR)) return undefined;
  const entries = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  // Or where the directory begins: some by its offset, some by its size.
  if (at + zip.readUInt32LE(end + 12) !== end) return undefined;
  let total = 0;
  for (let i = 0; i < entries; i++) {
    if (budget.streams-- <= 0 || zip.readUInt32LE(at) !== DIRECTORY_ENTRY) return undefined;
    const entry = readEntry(zip, at, budget);
    if (entry === undefined) return undefined;
    total += textTokens(entry, budget);
    at += DIRECTORY_ENTRY_BYTES + zip.readUInt16LE(at + 28) + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);
  }
  // Nor do they all go by the number of entries.
  return entries > 0 && at === end ? total : undefined;
}

/** @param at where the directory's entry is. */
function readEntry(zip: Buffer, at: number, budget: ReadingBudget): Buffer | undefined {
  const isEncrypted = (zip.readUInt16LE(at + 8) & 1) === 1;
  const method = zip.readUInt16LE(at + 10);
  const packedBytes = zip.readUInt32LE(at + 20);
  const local = zip.readUInt32LE(at + 42);
  // Some readers go by the entry's own header.
  const isSame = zip.readUInt32LE(local) === LOCAL_HEADER && zip.readUInt16LE(local + 8) === method;
  if (isEncrypted || !isSame) return undefined;
  const start = local + LOCAL_HEADER_BYTES + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
  if (start + packedBytes > zip.length) return undefined;
  const packed = zip.subarray(start, start + packedBytes);
  if (method === STORED) return packed;
  if (method !== DEFLATED) return undefined;
  return unpackedWithin(budget, packedBytes, (maxOutputLength) => inflateRawSync(packed, { maxOutputLength }));
}
