/**
 * What of a body is not text: images, files and sound, each with the tokens that it can cost at most by the rules that
 * vendors publish (docs/decisions/a-hold-follows-what-is-held.md has them). A size that the client chose, in a header or
 * in bytes, is believed only where the other of the two agrees.
 */
import { isUtf8 } from "node:buffer";
import { isObject, type JsonObject, textOf } from "../../values/json-object.ts";
import type { MediaPiece } from "../../values/members/envelope.ts";
import { charsetOf, decodeCharset, isReadAsUtf8 } from "../../wire/charset.ts";
import { type Met, member } from "./conversation.ts";
import { IMAGE_HEAD_BYTES, imageSize } from "./image-size.ts";
import { isPdf, pdfSize, type ReadingBudget, readingBudget } from "./pdf-size.ts";
import { textTokens } from "./text-density.ts";
import { endsAsZip, isZip, ZIP_END_BYTES, zipTokens } from "./zip-size.ts";

/** Members that may hold media, or say where it is. */
export const MEDIA_NAMES: ReadonlySet<string> = new Set(
  "image_url input_audio file file_data file_url source audio_url video_url image document_url result".split(" "),
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
    // What some servers have of their own, and what a server of images has made.
    if (typeof node.image === "string") this.#add("image", node, "image");
    if (typeof node.document_url === "string") this.#add("file", node, "document_url");
    if (node.type === "image_generation_call" && typeof node.result === "string") this.#add("image", node, "result");
    if (typeof node.input_audio === "string") this.#add("file", node, "input_audio", "audio");
    else if (node.input_audio !== undefined) this.#add("file", node.input_audio, "data", "audio");
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
  // Readers differ in which of the two say how large a sample is: the longer sound counts.
  const frame = isSampled ? Math.min(head.readUInt16LE(32), (head.readUInt16LE(22) * head.readUInt16LE(34)) >> 3) : 0;
  const bySamples = isSampled && head.readUInt16LE(20) === 1 ? head.readUInt32LE(24) * frame : 0;
  const said = Math.min(bySamples, (isSampled && head.readUInt32LE(28)) || bySamples);
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
