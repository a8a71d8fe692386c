/** Strict parsing of header fields, as far as a proxy needs it. */

export { cidrMatcher, forwardedClient } from "./address.ts";

/**
 * Fields that end at the next hop even if Connection does not name them (RFC 9110 section 7.6.1; RFC 2616 section
 * 13.5.1).
 */
const HOP_BY_HOP: readonly string[] = [
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

/**
 * Fields that are never dropped, even if Connection names them. Without content-length, a message would end elsewhere;
 * without the others, its recipient or its sender would be wrong. RFC 9110 section 7.6.1 forbids naming a field that is
 * for all recipients.
 */
const END_TO_END = /^(?:content-length|host|x-forwarded-.*)$/;

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const SAFE_VALUE = /^[\t\x20-\x7e]*$/;
const DECIMAL = /^[0-9]{1,10}(?:\.[0-9]{1,20})?$/;
const IMF_FIXDATE =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), [0-3][0-9] (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [0-9]{4} [0-2][0-9]:[0-5][0-9]:[0-6][0-9] GMT$/;

/** The longest wait that is accepted from an upstream, in seconds. */
const RETRY_AFTER_S_MAX = 3_600;

/**
 * The fields, in lowercase, that must not be passed on: the fixed ones and those that Connection names
 * (docs/failure-model.md rows 24 and 62).
 * @param connectionHeader the value of `connection`; several lines joined by commas.
 */
export function hopByHopNames(connectionHeader: string | undefined): Set<string> {
  const names = new Set(HOP_BY_HOP);
  if (connectionHeader === undefined) return names;
  for (const option of connectionHeader.split(",")) {
    const name = option.trim().toLowerCase();
    if (isToken(name) && !END_TO_END.test(name)) names.add(name);
  }
  return names;
}

/** Whether a text is a token (RFC 9110 section 5.6.2), such as a field name or a method. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}

/** Whether a field value has only printable ASCII, spaces and tabs: no CTL and no obs-text (row 63). */
export function safeHeaderValue(text: string): boolean {
  return SAFE_VALUE.test(text);
}

/**
 * Reads `retry-after` (RFC 9110 section 10.2.3): seconds, or a date in the preferred format; the two obsolete date
 * formats are not supported. Seconds may have a fraction, which the RFC does not allow but servers send
 * (https://github.com/urllib3/urllib3/issues/2861).
 * @param nowMs milliseconds since the epoch.
 * @returns whole seconds, rounded up, from 0 to 3600; undefined for anything else, including a date in the past.
 */
export function parseRetryAfterS(text: string, nowMs: number): number | undefined {
  const value = text.trim();
  let seconds: number;
  if (DECIMAL.test(value)) seconds = Math.ceil(Number(value));
  else if (IMF_FIXDATE.test(value)) seconds = Math.ceil((Date.parse(value) - nowMs) / 1_000);
  else return undefined;
  // A date that does not exist gives NaN, which fails the comparison; adding 0 turns -0 into 0.
  return seconds >= 0 && seconds <= RETRY_AFTER_S_MAX ? seconds + 0 : undefined;
}

/**
 * Reads `retry-after-ms`, which Azure and other servers send in addition to `retry-after`, because a pause may be well
 * below a second (https://github.com/openai/openai-python/issues/957): milliseconds, possibly with a fraction.
 * @returns whole milliseconds, rounded up, from 0 to an hour; undefined for anything else.
 */
export function parseRetryAfterMs(text: string): number | undefined {
  const value = text.trim();
  if (!DECIMAL.test(value)) return undefined;
  const ms = Math.ceil(Number(value));
  return ms <= RETRY_AFTER_S_MAX * 1_000 ? ms : undefined;
}

interface MediaType {
  /** `type/subtype` in lowercase. */
  readonly type: string;
  /** Values by parameter name in lowercase; without quotes, the value's case unchanged. */
  readonly parameters: ReadonlyMap<string, string>;
}

const TYPE = /^[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+\/[!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*/;
const PARAMETER =
  /;[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)|"((?:[^"\\]|\\.)*)")[ \t]*)?/y;

/**
 * Reads a `content-type` (RFC 9110 section 8.3.1).
 * @returns undefined if it is missing, malformed, or names a parameter twice.
 */
export function mediaTypeOf(contentType: string | undefined): MediaType | undefined {
  const head = contentType === undefined ? null : TYPE.exec(contentType);
  if (contentType === undefined || head === null || !safeHeaderValue(contentType)) return undefined;
  const parameters = new Map<string, string>();
  let at = head[0].length;
  while (at < contentType.length) {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(contentType);
    if (match === null) return undefined;
    at = PARAMETER.lastIndex;
    // The grammar allows an empty parameter: `a/b;` or `a/b; ;c=d`.
    if (match[1] === undefined) continue;
    const name = match[1].toLowerCase();
    if (parameters.has(name)) return undefined;
    parameters.set(name, match[2] ?? (match[3] as string).replace(/\\(.)/g, "$1"));
  }
  return { type: (head[1] as string).toLowerCase(), parameters };
}
