/** What a body may hold at most, and what is wrong with one that holds more or is no JSON object. */
import { startsWithBom } from "./utf8.ts";

/** What a body may hold at most; what is left out has no maximum. */
export interface JsonLimits {
  /** Objects and arrays inside each other, the top-level object included. */
  readonly depthMax: number;
  /** Values and member names together: what decides the time and memory that JSON.parse takes, not the bytes. */
  readonly tokensMax: number;
  /** Members of the top-level object. Each of them is named, compared with the others and looked for by its name. */
  readonly membersMax?: number;
  /** Bytes of a member's name as it is written, at any depth: names are hashed, and none can be read in steps. */
  readonly nameBytesMax?: number;
  /** Characters of a number. */
  readonly numberCharsMax?: number;
}

/** Far above what any chat needs. The three protocols have some 60 top-level members, the servers of open models 100. */
export const JSON_LIMITS: Required<JsonLimits> = {
  depthMax: 128,
  tokensMax: 500_000,
  membersMax: 256,
  nameBytesMax: 8_192,
  numberCharsMax: 1_024,
};

/** Why a body may not be given to JSON.parse. */
export interface JsonFault {
  readonly fault: "not_json" | "too_deep" | "too_many_tokens" | "too_many_members" | "too_long" | "duplicate_field";
  /** The byte position of the trouble. */
  readonly at: number;
  /** The name that is there twice, escapes decoded; `duplicate_field` only. */
  readonly name?: string;
  /** A sentence for the client. It holds nothing of the body. */
  readonly reason: string;
}

export function noObject(bytes: Uint8Array, at: number): JsonFault {
  const reason = startsWithBom(bytes)
    ? "The body begins with a byte order mark."
    : "The body must be one JSON object in UTF-8.";
  return { fault: "not_json", at, reason };
}

export function notJson(at: number, length: number): JsonFault {
  const reason = at >= length ? "The JSON ends too early." : `The JSON is broken at byte ${at}.`;
  return { fault: "not_json", at: Math.min(at, length), reason };
}

export function tooDeep(at: number, limits: JsonLimits): JsonFault {
  return { fault: "too_deep", at, reason: `The JSON is nested deeper than ${limits.depthMax} levels.` };
}

export function tooManyTokens(at: number, limits: JsonLimits): JsonFault {
  return { fault: "too_many_tokens", at, reason: `The JSON has more than ${limits.tokensMax} values and names.` };
}

export function tooManyMembers(at: number, limits: JsonLimits): JsonFault {
  const reason = `The JSON has more than ${limits.membersMax} members at its top level.`;
  return { fault: "too_many_members", at, reason };
}

export function nameTooLong(at: number, limits: JsonLimits): JsonFault {
  return { fault: "too_long", at, reason: `The name at byte ${at} has more than ${limits.nameBytesMax} bytes.` };
}

export function numberTooLong(at: number, limits: JsonLimits): JsonFault {
  return {
    fault: "too_long",
    at,
    reason: `The number at byte ${at} has more than ${limits.numberCharsMax} characters.`,
  };
}
