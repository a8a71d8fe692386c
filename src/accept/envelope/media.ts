/**
 * The parts of a body that are not text: images, files and audio. Each has the most tokens that it can cost by the
 * rules that vendors publish (docs/decisions/a-hold-follows-what-is-held.md). The client controls both the size in the
 * header and the number of bytes, so neither is trusted unless the other one agrees.
 */
import { isUtf8 } from "node:buffer";
import { arrayOf, isGiven, isObject, type JsonObject, textOf } from "../../values/json-object.ts";
import type { MediaPiece } from "../../values/members/envelope.ts";
import { charsetOf, decodeCharset, isReadAsUtf8 } from "../../wire/charset.ts";
import { type Met, member } from "./conversation.ts";
import { IMAGE_HEAD_BYTES, imageSize } from "./image-size.ts";
import { isPdf, pdfSize, type ReadingBudget, readingBudget } from "./pdf-size.ts";
import { textTokens } from "./text-density.ts";
import { endsAsZip, isZip, ZIP_END_BYTES, zipTokens } from "./zip-size.ts";

/** Members that may hold media, or say where it is, whatever the type of their part. */
const MEDIA_NAMES: ReadonlySet<string> = new Set(
  `image_url input_audio file file_data file_url source audio_url video_url image images document_url result
   video audio`.split(/\s+/),
);

/**
 * Members in which servers take media of a part without a type, by what they take there. vLLM reads such parts by the
 * names of their members.
 */
const UNTYPED_NAMES: ReadonlyMap<string, MediaPiece["kind"]> = new Map([
  ["file", "file"],
  ["file_data", "file"],
  ["file_uri", "file"],
  ["document", "file"],
  ["input_file", "file"],
  ["input_video", "file"],
  ["image_embeds", "file"],
  ["audio_embeds", "file"],
  ["input_image", "image"],
]);

const MAY_HOLD_MEDIA: ReadonlySet<string> = new Set([...MEDIA_NAMES, ...UNTYPED_NAMES.keys()]);

/** Whether a member with this name may hold media, or say where it is. */
export function mayHoldMedia(name: string): boolean {
  return MAY_HOLD_MEDIA.has(name);
}

/** Collects the media of one body. */
export class MediaCount {
  readonly pieces: MediaPiece[] = [];
  /**
   * Strings of the body that are base64 media and not text: by the object that holds them, the names of its members.
   */
  readonly places = new Map<object, string[]>();
  /** Total length of these strings. */
  base64Bytes = 0;
  readonly #budget: ReadingBudget = readingBudget();

  /**
   * Looks at one object of the conversation.
   * @param mayWeigh whether one of its members `mayHoldMedia`.
   */
  see({ node, under }: Met, mayWeigh: boolean): void {
    const before = this.pieces.length;
    const weighed = mayWeigh ? this.#weigh(node) : undefined;
    const listed = mayWeigh ? listedImages(node) : 0;
    if (PART_LISTS.has(under)) {
      const kind = unmeasured(node, MESSAGE_LISTS.has(under), weighed);
      // What a part of images is expected to show is in its list.
      if (kind === "image" && listed === 0) this.#unknown(kind);
      if (kind === "file" && !this.pieces.slice(before).some(isUnknownFile)) this.#unknown(kind);
    }
    for (let left = listed; left > 0; left--) this.#unknown("image");
  }

  #weigh(node: JsonObject): Weighed {
    const before = this.pieces.length;
    const { image_url: image, source } = node;
    if (isObject(source) && node.type === "image") this.#seeSource(node, source);
    if (image !== undefined && image !== null) this.#weighImage(node, "image_url");
    // Extensions of some servers, and the results of image generation.
    const { image: other } = node;
    if (typeof other === "string" || (isObject(other) && isGiven(other.url))) this.#weighImage(node, "image");
    const images = this.pieces.length;
    if (isGiven(node.document_url)) this.#add("file", node, "document_url");
    if (node.type === "image_generation_call" && typeof node.result === "string") this.#add("image", node, "result");
    if (typeof node.input_audio === "string") this.#add("file", node, "input_audio", "audio");
    else if (isGiven(node.input_audio)) this.#add("file", node.input_audio, "data", "audio");
    if (isObject(node.file)) {
      this.#add("file", node.file, "file_data");
      // Without bytes the address is what was added.
      if (isGiven(node.file.file_data) && hasAddress(node.file)) this.#unknown("file");
    }
    const isInput = node.type === "input_file";
    if (isInput && (!isObject(node.file) || isGiven(node.file_data))) this.#add("file", node, "file_data");
    if (isObject(source) && node.type !== "image") this.#seeSource(node, source);
    if (isGiven(node.audio_url) || isGiven(node.video_url) || holdsRecording(node)) this.#unknown("file");
    return { hasImage: images > before, hasFile: this.pieces.length > images };
  }

  /** The image of this member: an address, base64, or an object with one of them. `listedImages` counts lists. */
  #weighImage(node: JsonObject, name: "image_url" | "image"): void {
    const held = node[name];
    if (Array.isArray(isObject(held) ? held.url : held)) return;
    if (isObject(held)) this.#add("image", held, "url");
    else this.#add("image", node, name);
    this.#enlarge(node);
    if (isObject(held)) this.#enlarge(held);
  }

  /** Servers of Qwen models enlarge an image to the pixels that its part asks for, and bill these. */
  #enlarge(part: JsonObject): void {
    const last = this.pieces.at(-1);
    const pixels = pixelsAsked(part);
    if (pixels === 0 || last?.tokens === undefined) return;
    // A value that is not a number hides the size.
    const asked = pixels >= 0 ? Math.ceil(pixels / PATCH_PX ** 2) : IMAGE_TOKENS_BY_BYTES_MAX;
    const tokens = Math.max(last.tokens, Math.min(asked, IMAGE_TOKENS_BY_BYTES_MAX));
    this.pieces[this.pieces.length - 1] = { ...last, tokens };
  }

  /** A source of type `text` is text. A source of type `content` holds parts that are visited separately. */
  #seeSource(node: JsonObject, source: JsonObject): void {
    if (source.type === "text" || source.type === "content") return;
    const kind = node.type === "image" ? "image" : "file";
    if (source.type === "base64") this.#add(kind, source, "data");
    else this.#unknown(kind);
  }

  #unknown(kind: MediaPiece["kind"]): void {
    this.pieces.push({ kind, tokens: undefined });
  }

  /** Adds a piece. Its bytes are counted once, even if several types in the body describe the same member. */
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

/** The pixels to which a part has its image enlarged; 0: it does not ask for it; NaN: it hides how many. */
function pixelsAsked({ min_pixels: least, resized_height: height, resized_width: width }: JsonObject): number {
  const resized = isGiven(height) && isGiven(width) ? Number(height) * Number(width) : 0;
  return Math.max(isGiven(least) ? Number(least) : 0, resized);
}

/** Whether a part holds a recording as servers of Qwen models take it, also without a type. Earlier audio has only an id. */
function holdsRecording({ video, audio }: JsonObject): boolean {
  return isGiven(video) || (isGiven(audio) && !(isObject(audio) && isGiven(audio.id)));
}

/** Members in which some servers also take a list of images, or an object with its address. */
const IMAGE_LISTS = ["image_url", "image", "images"] as const;

/**
 * How many images an object has in these, besides an object with an address that is weighed; those with media members of
 * their own are visited separately.
 */
function listedImages(node: JsonObject): number {
  let listed = typeof node.images === "string" ? 1 : 0;
  for (const name of IMAGE_LISTS) {
    const held = node[name];
    const isWeighed = name === "image_url" || (name === "image" && isObject(held) && isGiven(held.url));
    if (!isWeighed && isObject(held) && !Array.isArray(held.url) && !isVisited(held)) listed++;
    for (const one of arrayOf(isObject(held) ? held.url : held)) if (!isVisited(one)) listed++;
  }
  return listed;
}

function isVisited(one: unknown): boolean {
  // An entry with an address is an image, whatever else it has.
  return isObject(one) && !isGiven(one.url) && Object.keys(one).some((name) => MEDIA_NAMES.has(name));
}

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
  // Starts at a complete group of four characters, so that the decoded bytes are those of the file.
  const from = Math.max(0, text.length - Math.ceil(bytesMax / 3) * 4 - 4);
  return Buffer.from(text.slice(from - (from % 4)), "base64");
}

/**
 * Bytes of a file's text per token: the default of `input_bytes_per_token`. The model's own value is not known here.
 */
const TEXT_BYTES_PER_TOKEN = 3;

function pieceOf(
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

/** Members whose objects are messages, items and parts. Other members hold sources and tools. */
const PART_LISTS: ReadonlySet<string> = new Set(["messages", "system", "input", "content", "output"]);

/** Types of messages, items, parts and blocks that are text, or whose contents are visited separately. */
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
  custom_tool_call_output item_reference program program_output agent_message multi_agent_call
  multi_agent_call_output`.split(/\s+/),
);

const IMAGE_TYPES: ReadonlySet<string> = new Set(["image", "image_url", "input_image", "computer_screenshot"]);

/** Types of parts whose media is weighed, and the member that has it: what is in others does not stand for it. */
const FILE_TYPES: ReadonlyMap<string, string> = new Map([
  ["file", "file"],
  ["input_file", "file_data"],
  ["document", "source"],
  ["document_url", "document_url"],
  ["input_audio", "input_audio"],
]);

/** Lists of messages and items. A message has a role instead of a type; a part with a role is still a part. */
const MESSAGE_LISTS: ReadonlySet<string> = new Set(["messages", "input"]);

/** What was weighed of a part. */
interface Weighed {
  readonly hasImage: boolean;
  readonly hasFile: boolean;
}

/**
 * What a part may hold besides what was weighed of it: nothing, an image, or a file. Every unknown type is a file,
 * because a member that nobody knows may be larger than one that is weighed.
 * @param isItem whether it is in a list of messages or items.
 * @param weighed undefined: no member of the part may hold media.
 */
function unmeasured(node: JsonObject, isItem: boolean, weighed: Weighed | undefined): MediaPiece["kind"] | undefined {
  const { type, source } = node;
  // A server may take the address although the part also has the bytes of a file.
  if (weighed && isGiven(node.file_url)) return "file";
  if (typeof type !== "string") return weighed && !(isItem && isGiven(node.role)) ? untypedKind(node) : undefined;
  if (TEXT_TYPES.has(type) || type.endsWith("_error")) return undefined;
  if (IMAGE_TYPES.has(type)) return weighed?.hasImage ? undefined : "image";
  if (type === "document" && isObject(source) && !weighed?.hasImage && !weighed?.hasFile) return undefined;
  return weighed?.hasFile && isShown(node, FILE_TYPES.get(type)) && !hasAddress(node) ? undefined : "file";
}

/** Whether a part has this member in a form that is weighed. */
function isShown(node: JsonObject, name: string | undefined): boolean {
  if (name === undefined) return false;
  return name === "file" || name === "source" ? isObject(node[name]) : isGiven(node[name]);
}

/** Whether an object names the address of a file besides its bytes. */
function hasAddress({ file_url: url, file_uri: uri, url: other }: JsonObject): boolean {
  return [url, uri, other].some(isGiven);
}

/** What a part without a type may hold by the names of its members; a message has a role instead of a type. */
function untypedKind(node: JsonObject): MediaPiece["kind"] | undefined {
  for (const [name, kind] of UNTYPED_NAMES) {
    const held = node[name];
    // The content of an object is weighed.
    if (isGiven(held) && !(name === "file" && isObject(held))) return kind;
  }
  return undefined;
}

function isUnknownFile({ kind, tokens }: MediaPiece): boolean {
  return kind === "file" && tokens === undefined;
}
