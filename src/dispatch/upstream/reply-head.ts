/**
 * Reads the head of an upstream's reply without trusting it: anything malformed is a failure, and of a valid head only
 * five facts are kept (docs/failure-model.md rows C7 and 61 to 63).
 */
import { parseRetryAfterMs, parseRetryAfterS, safeHeaderValue } from "../../wire/header.ts";
import { type Failure, failure } from "../failure.ts";

const ENCODINGS = ["gzip", "br", "deflate", "zstd"] as const;
export type Encoding = (typeof ENCODINGS)[number];

export interface ReplyHead {
  readonly status: number;
  /** As sent: printable ASCII. */
  readonly contentType: string | undefined;
  /** The media type alone, in lowercase; empty if none was sent. */
  readonly mediaType: string;
  /** The compression of the body; undefined for none. */
  readonly encoding: Encoding | undefined;
  readonly retryAfter: string | undefined;
  /** The same in milliseconds, from servers that send both. */
  readonly retryAfterMs: string | undefined;
}

/** Header fields in one head; real upstreams send 15 to 40. */
const FIELDS_MAX = 128;

/** The fields as undici gives them: names in lowercase, one character per byte, a list if a field was repeated. */
export type ReplyFields = Readonly<Record<string, string | readonly string[] | undefined>>;

/** @returns the facts of a reply's head, or how it is malformed. */
export function readReplyHead(status: number, fields: ReplyFields): ReplyHead | Failure {
  if (status < 200 || status > 599) return failure("bad_headers", `status ${status}`, { status });
  let count = 0;
  for (const name in fields) {
    const value = fields[name] as string | readonly string[];
    // Usually a field occurs once, and no list is created.
    const isOne = typeof value === "string";
    count += isOne ? 1 : value.length;
    if (!(isOne ? safeHeaderValue(value) : value.every(safeHeaderValue))) {
      return failure("bad_headers", "a header value holds a byte outside ASCII", { status });
    }
  }
  if (count > FIELDS_MAX) return failure("bad_headers", `over ${FIELDS_MAX} header fields`, { status });
  const type = fields["content-type"];
  if (typeof type === "object" && type.length > 1)
    return failure("bad_headers", "content-type appears twice", { status });
  const encoding = readEncoding(valuesOf(fields, "content-encoding"));
  if (encoding === "unknown") return failure("bad_encoding", "content-encoding is unknown or stacked", { status });
  const contentType = firstOf(fields, "content-type");
  return {
    status,
    contentType,
    mediaType: mediaTypeIn(contentType ?? ""),
    encoding,
    retryAfter: firstOf(fields, "retry-after"),
    retryAfterMs: firstOf(fields, "retry-after-ms") ?? firstOf(fields, "x-ms-retry-after-ms"),
  };
}

/** The last result: an upstream always sends the same type. */
let lastRead = { contentType: "", mediaType: "" };

function mediaTypeIn(contentType: string): string {
  if (contentType !== lastRead.contentType) {
    lastRead = { contentType, mediaType: contentType.split(";", 1)[0]?.trim().toLowerCase() ?? "" };
  }
  return lastRead.mediaType;
}

export function isFailure(value: ReplyHead | Failure): value is Failure {
  return "kind" in value;
}

const NO_VALUES: readonly string[] = [];

function valuesOf(fields: ReplyFields, name: string): readonly string[] {
  const value = fields[name];
  if (value === undefined) return NO_VALUES;
  return typeof value === "string" ? [value] : value;
}

function firstOf(fields: ReplyFields, name: string): string | undefined {
  const value = fields[name];
  return (typeof value === "object" ? value[0] : value)?.trim();
}

function readEncoding(values: readonly string[]): Encoding | undefined | "unknown" {
  if (values.length === 0) return undefined;
  const names = values
    .flatMap((value) => value.split(","))
    .map((name) =>
      name
        .trim()
        .toLowerCase()
        .replace(/^x-gzip$/, "gzip"),
    )
    .filter((name) => name !== "" && name !== "identity");
  if (names.length === 0) return undefined;
  const only = ENCODINGS.find((encoding) => encoding === names[0]);
  return names.length === 1 && only ? only : "unknown";
}

/**
 * The pause that the upstream asks for; by the value in milliseconds if that is valid.
 * @param nowMs milliseconds since the epoch.
 * @returns seconds, from 0 to an hour; undefined if it asks for nothing valid.
 */
export function askedPauseS({ retryAfter, retryAfterMs }: ReplyHead, nowMs: number): number | undefined {
  const ms = retryAfterMs === undefined ? undefined : parseRetryAfterMs(retryAfterMs);
  if (ms !== undefined) return ms / 1_000;
  return retryAfter === undefined ? undefined : parseRetryAfterS(retryAfter, nowMs);
}

/** Whether a media type may hold the JSON of a whole reply; a missing type is left to the parser. */
export function isJsonType(mediaType: string): boolean {
  return (
    mediaType === "" || mediaType === "application/json" || mediaType === "text/json" || mediaType.endsWith("+json")
  );
}
