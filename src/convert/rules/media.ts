/** Images and files in the form of each protocol (docs/translation-rules.md rule 18). */
import type { Capabilities } from "../../values/catalog.ts";
import { type JsonObject, objectOf } from "../../values/json-object.ts";
import { shownValue } from "../../values/words/shown.ts";
import { charsetOf, decodeCharset } from "../../wire/charset.ts";
import type { FilePart, ImagePart, MediaSource } from "../hub.ts";
import { refuse } from "./read.ts";

/** The image types that messages takes. */
const MESSAGES_IMAGE_TYPES: ReadonlySet<string> = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);

const DATA_URL = /^data:([^;,]+)((?:;[^;,]*)*?);base64,/i;

/** A URL as a source: a base64 data URL becomes bytes, everything else stays a URL. */
export function sourceOfUrl(url: string): MediaSource {
  const match = DATA_URL.exec(url.slice(0, 256));
  if (match?.[1] === undefined) return { kind: "url", url };
  return base64Source(`${match[1]}${match[2] ?? ""}`, url.slice(match[0].length));
}

/**
 * Bytes with their media type; the common misspelling of JPEG is corrected.
 * @param type a media type, with its parameters.
 */
export function base64Source(type: string, data: string): Extract<MediaSource, { kind: "base64" }> {
  const [name = ""] = type.split(";", 1);
  const lower = name.trim().toLowerCase();
  const mediaType = lower === "image/jpg" ? "image/jpeg" : lower;
  return { kind: "base64", mediaType, charset: charsetOf(type), data };
}

/** A source as one URL, as chat and responses write it. Callers refuse ids before. */
export function urlOfSource(source: Exclude<MediaSource, { kind: "id" }>): string {
  return source.kind === "url" ? source.url : `data:${source.mediaType};base64,${source.data}`;
}

/** The source of an image that this route can see. Refuses others, and file ids of other vendors. */
export function carriedImage(part: ImagePart, capabilities: Capabilities): Exclude<MediaSource, { kind: "id" }> {
  if (!capabilities.vision) refuse("untranslatable", part.param, "This model does not take images.");
  if (part.source.kind === "id") {
    return refuse("unsupported_parameter", part.param, "File ids of another vendor cannot be read.");
  }
  return part.source;
}

/** An image's source in the form of messages. */
export function messagesImageSource(part: ImagePart, capabilities: Capabilities): Record<string, unknown> {
  const source = carriedImage(part, capabilities);
  if (source.kind === "base64" && !MESSAGES_IMAGE_TYPES.has(source.mediaType)) {
    refuse("untranslatable", part.param, "Images must be JPEG, PNG, GIF or WebP for this model.");
  }
  if (source.kind === "url" && !/^https?:\/\//i.test(source.url)) {
    refuse("wrong_type", part.param, "An image must be an http URL or a base64 data URL.");
  }
  return source.kind === "base64"
    ? { type: "base64", media_type: source.mediaType, data: source.data }
    : { type: "url", url: source.url };
}

/** A file in any target: text, bytes, or a URL. */
type CarriedFile = { readonly kind: "text"; readonly text: string } | Exclude<MediaSource, { kind: "id" }>;

/** A file that this route can read; text files become text. Refuses others. */
export function carriedFile(part: FilePart, capabilities: Capabilities): CarriedFile {
  const { source } = part;
  if (source.kind === "id") {
    return refuse("unsupported_parameter", part.param, "File ids of another vendor cannot be read.");
  }
  if (source.kind === "text") return source;
  if (source.kind === "base64" && source.mediaType.startsWith("text/")) {
    const text = decodeCharset(Buffer.from(source.data, "base64"), source.charset);
    return text === undefined ? refuseCharset(part, source.charset) : { kind: "text", text };
  }
  if (!capabilities.pdf) refuse("untranslatable", part.param, "This model does not take documents.");
  return source;
}

function refuseCharset({ param }: FilePart, charset: string | undefined): never {
  return refuse(
    "untranslatable",
    param,
    `The charset of the text, ${shownValue(charset)}, is unknown; send it as UTF-8.`,
  );
}

/** The file's name, or a default: OpenAI's protocols require one with every file. */
export function fileName(part: FilePart, type: string): string {
  return part.name ?? (type === "application/pdf" ? "document.pdf" : "file");
}

/** A text file in a conversation that has only text: its title on its own line, then the text. */
export function titledText(name: string | undefined, text: string): string {
  return name === undefined || name === "" ? text : `${name}\n${text}`;
}

/* Images that a model made (docs/translation-rules.md rule 18). */

const MADE_IMAGE = /^(?:https?:\/\/[^\s]+|data:image\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=_-]+)$/i;
const BASE64_IMAGE = /^data:image\/([a-z0-9.+-]+);base64,/i;

/** The URL of an image in a chat reply, in OpenRouter's form; undefined if it is not an image. */
export function madeImage(part: JsonObject): string | undefined {
  const url = objectOf(part.image_url)?.url ?? part.image_url;
  return typeof url === "string" && MADE_IMAGE.test(url) ? url : undefined;
}

/** The URL of an image that a responses server has made, from its item; undefined while it is not done. */
export function imageOfItem({ result, output_format }: JsonObject): string | undefined {
  if (typeof result !== "string" || result === "") return undefined;
  const type = typeof output_format === "string" && /^[a-z0-9]{1,16}$/i.test(output_format) ? output_format : "png";
  const url = result.startsWith("data:") ? result : `data:image/${type.toLowerCase()};base64,${result}`;
  return MADE_IMAGE.test(url) ? url : undefined;
}

/** An image's bytes as base64, and their format; undefined if the image is behind a URL. */
export function base64Image(url: string): { readonly format: string; readonly data: string } | undefined {
  const found = BASE64_IMAGE.exec(url);
  return found?.[1] === undefined ? undefined : { format: found[1].toLowerCase(), data: url.slice(found[0].length) };
}

/** Text that stands for an image if the client's protocol has no form for it. */
export function imageNote(url: string): string {
  const bytes = base64Image(url);
  return bytes === undefined ? `[image: ${url}]` : "[The model made an image, which this protocol cannot carry.]";
}
