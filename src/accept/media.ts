/**
 * How much of a body is media: images, files and audio cost tokens by the piece, not by their bytes (DESIGN.md promise
 * 1). The walk is iterative and visits nothing but what can hold content parts.
 */
import type { Protocol } from "../values/protocol.ts";

export interface MediaCount {
  readonly images: number;
  /** Documents, files and audio. */
  readonly files: number;
  /** Bytes of base64 in the body that are media rather than text. */
  readonly base64Bytes: number;
}

type Json = Readonly<Record<string, unknown>>;

interface PartKind {
  readonly counts: "images" | "files";
  /** Members, possibly of a nested object, that may hold base64. */
  readonly data: (part: Json) => unknown;
}

/** Content parts of all three protocols by their type; the names do not overlap. */
const PART_KINDS: ReadonlyMap<string, PartKind> = new Map<string, PartKind>([
  ["image_url", { counts: "images", data: (part) => member(part.image_url, "url") }],
  ["input_audio", { counts: "files", data: (part) => member(part.input_audio, "data") }],
  ["file", { counts: "files", data: (part) => member(part.file, "file_data") }],
  ["image", { counts: "images", data: (part) => base64Of(part.source) }],
  ["document", { counts: "files", data: (part) => base64Of(part.source) }],
  ["input_image", { counts: "images", data: (part) => part.image_url }],
  ["input_file", { counts: "files", data: (part) => part.file_data }],
  ["computer_screenshot", { counts: "images", data: (part) => part.image_url }],
]);

/** Members in which a message, block or item holds further parts. */
const CONTAINERS = ["content", "output", "source"] as const;

/** The top-level members that hold the conversation. */
const ROOTS: Readonly<Record<Protocol, readonly string[]>> = {
  chat: ["messages"],
  messages: ["messages", "system"],
  responses: ["input"],
};

/** Counts the media parts of a request body; takes what it finds and trusts no shape. */
export function countMedia(protocol: Protocol, json: Json): MediaCount {
  const count = { images: 0, files: 0, base64Bytes: 0 };
  const pending: unknown[] = ROOTS[protocol].map((name) => json[name]);
  while (pending.length > 0) {
    const node = pending.pop();
    if (Array.isArray(node)) {
      for (const item of node) if (typeof item === "object" && item !== null) pending.push(item);
      continue;
    }
    if (!isObject(node)) continue;
    const kind = typeof node.type === "string" ? PART_KINDS.get(node.type) : undefined;
    if (kind) {
      count[kind.counts] += 1;
      count.base64Bytes += base64Length(kind.data(node));
    }
    for (const name of CONTAINERS) {
      const held = node[name];
      if (typeof held === "object" && held !== null) pending.push(held);
    }
  }
  return count;
}

/** Text that calls itself a document is text: only base64 sources count. */
function base64Of(source: unknown): unknown {
  return member(source, "type") === "base64" ? member(source, "data") : undefined;
}

/**
 * The length of a string when it is a data URL or bare base64, else 0. Every character is looked at: otherwise text
 * could be smuggled past the estimate as media.
 */
function base64Length(value: unknown): number {
  if (typeof value !== "string") return 0;
  const comma = value.startsWith("data:") ? value.slice(0, DATA_URL_HEAD_CHARS_MAX).indexOf(",") : -1;
  return NOT_BASE64.test(comma === -1 ? value : value.slice(comma + 1)) ? 0 : value.length;
}

const DATA_URL_HEAD_CHARS_MAX = 256;
// Looks for one character and never backtracks: `^[...]+$` would need a stack as long as the text.
const NOT_BASE64 = /[^A-Za-z0-9+/_=-]/;

function member(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
