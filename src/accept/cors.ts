/**
 * Cross-origin requests, only for the origins that the operator has configured (docs/failure-model.md row 83). Without
 * configuration, no answer has an `access-control-*` header.
 */
import type { RequestHeaders } from "./headers.ts";
import type { ReplyHeaders } from "./reply.ts";

const PREFLIGHT_AGE_S = 600;
const REQUEST_HEADERS_CHARS_MAX = 1_024;
/** The rate limits of a group, in the spelling of each protocol's SDKs. */
const LIMITS = ["requests", "tokens"].flatMap((bucket) =>
  ["limit", "remaining", "reset"].flatMap((what) => [
    `x-ratelimit-${what}-${bucket}`,
    `anthropic-ratelimit-${bucket}-${what}`,
  ]),
);
/** What a page may read of an answer: every header that docs/errors.md tells clients to read, and the limits. */
const EXPOSED = [
  ...["x-request-id", "request-id", "retry-after", "x-should-retry", "x-tollgate-origin", "x-tollgate-hint"],
  ...["x-tollgate-clamped", "x-tollgate-budget-reset", "x-tollgate-paid-by", "x-tollgate-translation"],
  ...LIMITS,
].join(", ");

const NONE: ReplyHeaders = Object.freeze({});

/**
 * The CORS headers of every answer to this request.
 * @param origins as configured, compared character by character; `*` is not special.
 */
export function corsHeaders(origins: readonly string[], headers: RequestHeaders): ReplyHeaders {
  if (origins.length === 0) return NONE;
  const origin = headers.get("origin");
  if (origin === undefined || !origins.includes(origin)) return { vary: "Origin" };
  return { vary: "Origin", "access-control-allow-origin": origin, "access-control-expose-headers": EXPOSED };
}

/**
 * The headers of the answer to a preflight of an allowed origin; undefined for any other request. The headers that the
 * browser asks for are granted if they are a plain list of names, because clients may send headers of their own.
 */
export function preflightHeaders(
  origins: readonly string[],
  method: string,
  headers: RequestHeaders,
): ReplyHeaders | undefined {
  if (method !== "OPTIONS" || !headers.has("access-control-request-method")) return undefined;
  if (!origins.includes(headers.get("origin") ?? "")) return undefined;
  const asked = headers.get("access-control-request-headers") ?? "";
  const plain = asked.length <= REQUEST_HEADERS_CHARS_MAX && /^[a-z0-9_, -]+$/i.test(asked);
  return {
    "access-control-allow-methods": "GET, POST, HEAD, DELETE",
    "access-control-max-age": String(PREFLIGHT_AGE_S),
    ...(plain ? { "access-control-allow-headers": asked } : {}),
  };
}
