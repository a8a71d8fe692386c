/**
 * What passes of a head, to the site and back: pure, and built afresh in both directions. What a message's end depends
 * on is never copied from the other side's word about it; it is written anew from what was read.
 */
import { type Refusal, refusal } from "../../values/errors.ts";
import { containsKey } from "../../values/key-search.ts";
import { hopByHopNames } from "../../wire/header.ts";
import { framing } from "../framing.ts";
import type { RequestHeaders } from "../headers.ts";
import { climbs, splitTarget } from "../routes.ts";

/** Names and values in turn, as node:http reads and writes them. */
export type RawHead = readonly string[];

/** A request for the site, as far as its head goes. */
export interface VisitHead {
  readonly method: string;
  /** As it came. */
  readonly target: string;
  readonly headers: RequestHeaders;
  /** The visitor's address as this gateway knows it; undefined when none can be trusted. */
  readonly clientAddress: string | undefined;
  /** Whether the client waits for 100 Continue before it sends its body. */
  readonly awaitsContinue: boolean;
}

/** Fields that we write anew, or that no visitor may send in our name. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  "content-length",
  "expect",
  "forwarded",
  "host",
  "http2-settings",
  // A server of CGI's kind would take it for its own setting HTTP_PROXY (CVE-2016-5385).
  "proxy",
  "transfer-encoding",
  "x-forwarded-for",
  "x-real-ip",
]);

/**
 * Fields by which a site could make a front serve a file of its own, change how it sends, or take this gateway for ill
 * (Envoy's x-envoy-immediate-health-check-fail), and those that say who answered.
 */
const NOT_RETURNED = /^x-(?:accel-|sendfile$|envoy-|request-id$|tollgate-)/;

/** Visible ASCII (RFC 9112 section 3.2, RFC 3986 section 2), less what starts a fragment, which no target has. */
const TARGET = /^[!"\x24-\x7e]+$/;

/**
 * What is wrong with a target or host that would go out byte for byte.
 *
 * A backslash is no character of a path, and is a slash to those who read paths as browsers do: the one such reading
 * that a front's own rule by path would not have foreseen.
 * @param basePath the path under which the site is served; if it is not empty, a target must stay below it.
 */
export function targetFault({ target, headers }: VisitHead, basePath: string): Refusal | undefined {
  const { path } = splitTarget(target);
  if (!TARGET.test(target) || path.includes("\\")) {
    return framing("The request target has a character that must be percent-encoded.");
  }
  if (basePath !== "" && climbs(path)) return framing("The request target has a segment of two dots.");
  if (containsKey(target) || containsKey(headers.get("host") ?? "")) return refusal("key_in_address");
  return undefined;
}

/**
 * The head that the site gets: the visitor's own fields, with no key of ours among them, no hop-by-hop field, the
 * client's address only as this gateway knows it, and the body framed as it was.
 * @param siteHost what HTTP/1.1 demands for a visitor whose HTTP/1.0 named no host.
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

/** `framingFault` has let only these two forms pass, and never both. */
function framingHead(headers: RequestHeaders): RawHead {
  if (headers.has("transfer-encoding")) return ["transfer-encoding", "chunked"];
  const length = headers.get("content-length");
  // As a number, since 010 is ten here and may be eight elsewhere.
  return length === undefined ? [] : ["content-length", String(Number(length))];
}

/**
 * Whether a field ends here. Servers of CGI's kind take `_` for `-`, so a name that differs from one of these only in
 * that is treated as that one (no honest client sends `transfer_encoding`).
 */
function endsHere(name: string, hop: ReadonlySet<string>): boolean {
  const dashed = name.replaceAll("_", "-");
  const disguised = dashed !== name && dashed.startsWith("x-forwarded-");
  return hop.has(name) || hop.has(dashed) || NOT_FORWARDED.has(dashed) || disguised || LOWER_KEY.test(name);
}

/** A key that somebody wrote as a header's name, which is in lower case by now. */
const LOWER_KEY = /(?:^|[^0-9a-z])sk-[0-9a-z]{48}(?![0-9a-z])/;

/** Fields whose value is a list of parts that can do without one of them. */
const LISTS: Readonly<Record<string, string>> = { cookie: ";", "sec-websocket-protocol": "," };

/** @returns the value without keys of ours; undefined when nothing is left of it. */
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
 * In the places for keys of ours, a text that begins like a key counts as one, even if mistyped. A cookie of the console opens it: ports
 * share cookies, so the operator's comes here, too.
 */
const MEANT_AS_KEY: Readonly<Record<string, RegExp>> = {
  authorization: /^(?:bearer[ \t]+)?["']?sk-/i,
  "api-key": /^["']?sk-/,
  cookie: /(?:^|;)[ \t]*__Host-tollgate-/i,
  "sec-websocket-protocol": /(?:^|[,.\s])sk-/,
  "x-api-key": /^["']?sk-/,
  "x-goog-api-key": /^["']?sk-/,
};

/** What an answer has to be before any of it is passed on. */
interface AnswerHead {
  readonly httpVersion: string;
  readonly statusCode?: number | undefined;
  readonly rawHeaders: RawHead;
}

/**
 * Whether an answer's head is one that we can repeat without doubt about its end (RFC 9112 section 6.1; RFC 9110
 * section 15).
 */
export function isSoundAnswer(answer: AnswerHead, headersMax: number): boolean {
  const { httpVersion, statusCode = 0, rawHeaders } = answer;
  const codings = valuesOf(rawHeaders, "transfer-encoding");
  if (httpVersion !== "1.1" && (httpVersion !== "1.0" || codings.length > 0)) return false;
  if (codings.length > 1 || (codings[0] ?? "chunked").toLowerCase() !== "chunked") return false;
  return statusCode >= 200 && statusCode <= 599 && rawHeaders.length / 2 <= headersMax;
}

/** Whether a site that answered 101 speaks the protocol that it was asked for. */
export function isWebSocketAnswer(answer: AnswerHead, headersMax: number): boolean {
  const [protocol, ...more] = valuesOf(answer.rawHeaders, "upgrade");
  const asked = protocol?.toLowerCase() === "websocket" && more.length === 0;
  return asked && answer.httpVersion === "1.1" && answer.rawHeaders.length / 2 <= headersMax;
}

/** The head that the visitor gets: the site's, without hop-by-hop fields and without commands to the front. */
export function answerHead({ statusCode, rawHeaders }: AnswerHead): RawHead {
  const hop = hopByHopNames(valuesOf(rawHeaders, "connection").join(","));
  const head: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] as string).toLowerCase();
    if (hop.has(name) || NOT_RETURNED.test(name.replaceAll("_", "-"))) continue;
    // RFC 9110 section 8.6: these have no length to speak of.
    if (name === "content-length" && (statusCode === 101 || statusCode === 204)) continue;
    const value = rawHeaders[at + 1] as string;
    // As a number, since 010 is ten here and may be eight elsewhere.
    head.push(name, name === "content-length" ? String(Number(value)) : value);
  }
  return head;
}

function valuesOf(rawHead: RawHead, name: string): string[] {
  return rawHead.filter((_, at) => at % 2 === 1 && (rawHead[at - 1] as string).toLowerCase() === name);
}
