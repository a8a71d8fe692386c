/**
 * Refuses what Node's parser accepts but lets two parsers in a row disagree about where a request ends or whom it is
 * for (docs/failure-model.md rows 5 to 9; RFC 9112 sections 3.2, 6.1 and 11.2).
 */
import { type Refusal, refusal } from "../values/errors.ts";
import type { RequestHeaders } from "./headers.ts";
import type { HttpLimits } from "./http-limits.ts";

/** The parts of a request's head that framing depends on; Node's `IncomingMessage` has them. */
interface RequestHead {
  readonly httpVersion: string;
  readonly url?: string | undefined;
  readonly rawHeaders: readonly string[];
}

/** Headers whose repetition is always an attack or a broken front. */
const SINGLE = ["host", "content-length", "transfer-encoding", "content-type", "content-encoding", "expect"];

/**
 * Checks the head of a request that Node has parsed.
 * @returns a refusal that closes the connection (400, 414, 417, 431), or undefined if the framing is valid.
 */
export function framingFault(head: RequestHead, headers: RequestHeaders, limits: HttpLimits): Refusal | undefined {
  if (head.httpVersion !== "1.1" && head.httpVersion !== "1.0")
    return framing("Only HTTP/1.1 and HTTP/1.0 are supported.");
  if (head.rawHeaders.length / 2 > limits.headersMax) {
    return refusal("headers_too_large", { detail: `At most ${limits.headersMax} headers are accepted.` });
  }
  const target = head.url ?? "";
  if (target.length > limits.targetBytesMax) return targetTooLong(limits.targetBytesMax);
  // The absolute form and `*` name a host or a server. Only the path form names something here (row 9).
  if (!target.startsWith("/")) return framing("The request target must be a path.");
  const twice = SINGLE.find((name) => headers.repeats(name));
  if (twice !== undefined) return framing(`The ${twice} header appears more than once.`);
  if (head.httpVersion === "1.1" && !headers.has("host")) return framing("The host header is missing.");
  return bodyFramingFault(head.httpVersion, headers) ?? expectationFault(headers);
}

function bodyFramingFault(httpVersion: string, headers: RequestHeaders): Refusal | undefined {
  const coding = headers.get("transfer-encoding");
  const length = headers.get("content-length");
  if (coding !== undefined) {
    if (httpVersion === "1.0") return framing("HTTP/1.0 has no transfer-encoding.");
    if (coding.toLowerCase() !== "chunked") return framing("The only supported transfer-encoding is chunked.");
    if (length !== undefined) return framing("A body has either a content-length or a transfer-encoding.");
  }
  if (length !== undefined && !/^[0-9]{1,15}$/.test(length)) return framing("The content-length is not a number.");
  return undefined;
}

function expectationFault(headers: RequestHeaders): Refusal | undefined {
  const expect = headers.get("expect");
  if (expect === undefined || expect.toLowerCase() === "100-continue") return undefined;
  return refusal("expectation_failed");
}

/** A 414, which closes the connection. */
export function targetTooLong(bytesMax: number): Refusal {
  return refusal("uri_too_long", { detail: `At most ${bytesMax} bytes are accepted.` });
}

/** A 400 that says what is wrong with the message's framing, and closes the connection. */
export function framing(detail: string): Refusal {
  return refusal("framing", { detail });
}
