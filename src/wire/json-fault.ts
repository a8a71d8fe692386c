/** Limits on a JSON body, and the faults of a body that exceeds them or is not a JSON object. */
import { startsWithBom } from "./utf8.ts";

/** Limits on a body; an absent limit means unlimited. */
export interface JsonLimits {
  /** Nesting of objects and arrays, including the top-level object. */
  readonly depthMax: number;
  /** Values and member names together: these, not the bytes, determine the time and memory that JSON.parse takes. */
  readonly tokensMax: number;
  /** Members of the top-level object. Each is decoded, compared with the others and searched by its name. */
  readonly membersMax?: number;
  /** Bytes of a member's name as written, at any depth: names are hashed, and a name cannot be read in steps. */
  readonly nameBytesMax?: number;
  /** Characters of a number. */
  readonly numberCharsMax?: number;
}

/** Far more than any chat needs. The three protocols have some 60 top-level members, servers of open models 100. */
export const JSON_LIMITS: Required<JsonLimits> = {
  depthMax: 128,
  tokensMax: 500_000,
  membersMax: 256,
  nameBytesMax: 8_192,
  numberCharsMax: 1_024,
};

/** Why a body must not be passed to JSON.parse. */
export interface JsonFault {
  readonly fault: "not_json" | "too_deep" | "too_many_tokens" | "too_many_members" | "too_long" | "duplicate_field";
  /** The byte position of the fault. */
  readonly at: number;
  /** The repeated name, escapes decoded; `duplicate_field` only. */
  readonly name?: string;
  /** A sentence for the client. It contains nothing of the body. */
  readonly reason: string;
}

export function noObject(bytes: Uint8Array, at: number): JsonFault {
  const reason = startsWithBom(bytes)
    ? "The body begins with a byte order mark."
    : "The body must be one JSON object in UTF-8.";
  return { fault: "not_json", at, reason };
}

export function notJson(at: number, length: number): JsonFault {
  const reason = at >= length ? "The JSON ends too early." : `The JSON is invalid at byte ${at}.`;
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
