/**
 * The parts of a body that are not text: in which members servers take images, files and audio, and what a part may hold
 * that its members do not show (docs/decisions/a-hold-follows-what-is-held.md).
 */
import { arrayOf, isGiven, isObject, type JsonObject } from "../../values/json-object.ts";
import type { MediaPiece } from "../../values/members/envelope.ts";
import { type Met, member } from "./conversation.ts";
import { base64Of, enlargedTokens, pieceOf } from "./media-size.ts";
import { type ReadingBudget, readingBudget } from "./pdf-size.ts";

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
    const tokens = Math.max(last.tokens, enlargedTokens(pixels));
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
