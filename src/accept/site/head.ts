/**
 * Builds the heads of messages to and from the site; pure functions. A new head is built in both directions. Framing
 * headers are never copied: they are written from what was parsed.
 */
import { type Refusal, refusal } from "../../values/errors.ts";
import { containsKey } from "../../values/key-search.ts";
import { hopByHopNames } from "../../wire/header.ts";
import { framing } from "../framing.ts";
import type { RequestHeaders } from "../headers.ts";
import { hasParentSegment, splitTarget } from "../routes.ts";

/** Names and values alternating, as node:http reads and writes them. */
export type RawHead = readonly string[];

/** The head of a request for the site. */
export interface VisitHead {
  readonly method: string;
  /** As received. */
  readonly target: string;
  readonly headers: RequestHeaders;
  /** The visitor's address as this gateway knows it; undefined if none can be trusted. */
  readonly clientAddress: string | undefined;
  /** Whether the client waits for 100 Continue before it sends its body. */
  readonly awaitsContinue: boolean;
}

/** Headers that we write ourselves, or that no visitor may send in our name. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  "content-length",
  "expect",
  "forwarded",
  "host",
  "http2-settings",
  // CGI servers would map it to the environment variable HTTP_PROXY (CVE-2016-5385).
  "proxy",
  "transfer-encoding",
  "x-forwarded-for",
  "x-real-ip",
]);

/**
 * Headers with which a site could make a front serve a file, change how it sends, or consider this gateway unhealthy
 * (Envoy's x-envoy-immediate-health-check-fail), and headers that say who answered.
 */
const NOT_RETURNED = /^x-(?:accel-|sendfile$|envoy-|request-id$|tollgate-)/;

/**
 * Visible ASCII (RFC 9112 section 3.2, RFC 3986 section 2), except what starts a fragment, because no target has one.
 */
const TARGET = /^[!"\x24-\x7e]+$/;

/**
 * Checks a target and a host that would be sent byte for byte.
 *
 * A backslash is not allowed in a path, but software that parses paths like a browser reads it as a slash. Of such
 * readings, it is the only one that a path rule of a front would not have foreseen.
 * @param basePath the path under which the site is served; if it is not empty, a target must stay below it.
 */
export function targetFault({ target, headers }: VisitHead, basePath: string): Refusal | undefined {
  const { path } = splitTarget(target);
  if (!TARGET.test(target) || path.includes("\\")) {
    return framing("The request target has a character that must be percent-encoded.");
  }
  if (basePath !== "" && hasParentSegment(path)) return framing("The request target has a segment of two dots.");
  if (containsKey(target) || containsKey(headers.get("host") ?? "")) return refusal("key_in_address");
  return undefined;
}

/**
 * The head that the site gets: the visitor's own headers without our keys and hop-by-hop headers, the client's address
 * only as this gateway knows it, and the original framing of the body.
 * @param siteHost the Host header for HTTP/1.0 visitors that sent none; HTTP/1.1 requires one.
 */
export function requestHead(visit: VisitHead, siteHost: string, upgrade: boolean): RawHead {
  const { headers, clientAddress } = visit;
  const head = ["host", headers.get("host") ?? siteHost];
  const hop = hopByHopNames(headers.all("connection").join(","));
  for (const [name, value] of headers.entries()) {
    if (endsHere(name, hop)) continue;
    const kept = withoutKeys(name, value);
    if (kept !== undefined) head.push(name, kept);
  }
  if (clientAddress !== undefined) head.push("x-forwarded-for", clientAddress);
  if (visit.awaitsContinue) head.push("expect", "100-continue");
  if (upgrade) head.push("connection", "Upgrade", "upgrade", "websocket");
  // One connection, one request (docs/decisions/a-connection-to-the-site-carries-one-request.md).
  else head.push(...framingHead(headers), "connection", "close");
  return head;
}

/** Whether a request has a body, which may be empty. */
export function hasBody(headers: RequestHeaders): boolean {
  return headers.has("transfer-encoding") || headers.has("content-length");
}

/** `framingFault` allows only these two forms, and never both. */
function framingHead(headers: RequestHeaders): RawHead {
  if (headers.has("transfer-encoding")) return ["transfer-encoding", "chunked"];
  const length = headers.get("content-length");
  // As a number, because 010 is ten here and may be eight elsewhere.
  return length === undefined ? [] : ["content-length", String(Number(length))];
}

/**
 * Whether a header is dropped here. CGI servers treat `_` as `-`, so a name that differs from a dropped one only in
 * this is dropped too (no honest client sends `transfer_encoding`).
 */
function endsHere(name: string, hop: ReadonlySet<string>): boolean {
  const dashed = name.replaceAll("_", "-");
  const disguised = dashed !== name && dashed.startsWith("x-forwarded-");
  return hop.has(name) || hop.has(dashed) || NOT_FORWARDED.has(dashed) || disguised || LOWER_KEY.test(name);
}

/** A key that was written as a header name, which is in lowercase at this point. */
const LOWER_KEY = /(?:^|[^0-9a-z])sk-[0-9a-z]{48}(?![0-9a-z])/;

/** Headers whose value is a list; single items can be removed. */
const LISTS: Readonly<Record<string, string>> = { cookie: ";", "sec-websocket-protocol": "," };

/** @returns the value without our keys; undefined if nothing is left. */
function withoutKeys(name: string, value: string): string | undefined {
  const isMeant = (text: string) => MEANT_AS_KEY[name]?.test(text) === true || containsKey(text);
  if (!isMeant(value)) return value;
  const separator = LISTS[name];
  if (separator === undefined) return undefined;
  const kept = value.split(separator).filter((part) => !isMeant(part));
  const joined = kept.join(separator).trim();
  return joined === "" || isMeant(joined) ? undefined : joined;
}

/**
 * In headers for keys, a text that begins like a key counts as one, even if mistyped. A console cookie signs a user in,
 * and because cookies are shared between ports, the operator's cookie arrives here, too.
 */
const MEANT_AS_KEY: Readonly<Record<string, RegExp>> = {
  authorization: /^(?:bearer[ \t]+)?["']?sk-/i,
  "api-key": /^["']?sk-/,
  cookie: /(?:^|;)[ \t]*__Host-tollgate-/i,
  "sec-websocket-protocol": /(?:^|[,.\s])sk-/,
  "x-api-key": /^["']?sk-/,
  "x-goog-api-key": /^["']?sk-/,
};

/** The parts of an answer that are checked before any of it is passed on. */
interface AnswerHead {
  readonly httpVersion: string;
  readonly statusCode?: number | undefined;
  readonly rawHeaders: RawHead;
}

/**
 * Whether an answer's head can be repeated without doubt about where the answer ends (RFC 9112 section 6.1; RFC 9110
 * section 15).
 */
export function isSoundAnswer(answer: AnswerHead, headersMax: number): boolean {
  const { httpVersion, statusCode = 0, rawHeaders } = answer;
  const codings = valuesOf(rawHeaders, "transfer-encoding");
  if (httpVersion !== "1.1" && (httpVersion !== "1.0" || codings.length > 0)) return false;
  if (codings.length > 1 || (codings[0] ?? "chunked").toLowerCase() !== "chunked") return false;
  return statusCode >= 200 && statusCode <= 599 && rawHeaders.length / 2 <= headersMax;
}

/** Whether a 101 answer of the site agrees to the requested protocol. */
export function isWebSocketAnswer(answer: AnswerHead, headersMax: number): boolean {
  const [protocol, ...more] = valuesOf(answer.rawHeaders, "upgrade");
  const asked = protocol?.toLowerCase() === "websocket" && more.length === 0;
  return asked && answer.httpVersion === "1.1" && answer.rawHeaders.length / 2 <= headersMax;
}

/** The head that the visitor gets: the site's, without hop-by-hop headers and without commands to the front. */
export function answerHead({ statusCode, rawHeaders }: AnswerHead): RawHead {
  const hop = hopByHopNames(valuesOf(rawHeaders, "connection").join(","));
  const head: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    if (hop.has(name) || NOT_RETURNED.test(name.replaceAll("_", "-"))) continue;
    // RFC 9110 section 8.6: these answers have no content-length.
    if (name === "content-length" && (statusCode === 101 || statusCode === 204)) continue;
    const value = rawHeaders[at + 1] as string;
    // As a number, because 010 is ten here and may be eight elsewhere.
    head.push(name, name === "content-length" ? String(Number(value)) : value);
  }
  return head;
}

function valuesOf(rawHead: RawHead, name: string): string[] {
  return rawHead.filter((_, at) => at % 2 === 1 && (rawHead[at - 1] as string).toLowerCase() === name);
}
