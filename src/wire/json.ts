/**
 * JSON at the level of bytes: a linear scan that bounds what JSON.parse may be given (finding F8), knows where the
 * top-level members stand, and lets a rule splice one member without touching the others (promise 6).
 */
import { isUtf8 } from "node:buffer";
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  decodeString,
  faultPosition,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipScalar,
  skipSpace,
  skipString,
} from "./json-token.ts";
import { asBuffer, startsWithBom } from "./utf8.ts";

export {
  elementSpans,
  findNested,
  type JsonSpan,
  type MemberSpan,
  memberSpans,
  spliceNested,
  visitNames,
} from "./json-nested.ts";
export { decodeUtf8 } from "./utf8.ts";

/** Where one top-level member stands in the body; offsets are byte positions. */
export interface JsonMember {
  /** The member's name, escapes decoded. */
  readonly name: string;
  /** First byte of the name's opening quote. */
  readonly nameStart: number;
  /** First byte of the value. */
  readonly valueStart: number;
  /** One past the last byte of the value. */
  readonly valueEnd: number;
}

export interface JsonScan {
  readonly members: readonly JsonMember[];
  /** Offset of the closing brace of the top-level object. */
  readonly end: number;
}

/** What a body may hold at most. */
export interface JsonLimits {
  /** Objects and arrays inside each other, the top-level object included. */
  readonly depthMax: number;
  /** Values and member names together: what decides the time and memory that JSON.parse takes, not the bytes. */
  readonly tokensMax: number;
}

/** Far above what any chat needs, and still parsed well within the 250 ms that one body may stall the loop. */
export const JSON_LIMITS: JsonLimits = { depthMax: 128, tokensMax: 500_000 };

/** Why a body may not be given to JSON.parse. */
export interface JsonFault {
  readonly fault: "not_json" | "too_deep" | "too_many_tokens" | "duplicate_field";
  /** The byte position of the trouble. */
  readonly at: number;
  /** The name that stands twice, escapes decoded; `duplicate_field` only. */
  readonly name?: string;
  /** A sentence for the client. It holds nothing of the body. */
  readonly reason: string;
}

/** Narrows the result of a scan to its fault. */
export function isJsonFault(result: JsonScan | JsonFault): result is JsonFault {
  return "fault" in result;
}

/** What the scanner looks for next. */
const VALUE = 0;
const VALUE_OR_CLOSE = 1;
const NAME = 2;
const NAME_OR_CLOSE = 3;
const COMMA_OR_CLOSE = 4;

/**
 * Scans a body that must be one JSON object, in one pass, without recursion. Whatever passes, and is valid UTF-8, is
 * accepted by JSON.parse (reliability rows 44-47, 51). Duplicates are looked for at the top level only, where the
 * members that route and bill stand.
 */
export function scanJson(bytes: Uint8Array, limits: JsonLimits = JSON_LIMITS): JsonScan | JsonFault {
  const length = bytes.length;
  const isArrayAt = new Uint8Array(limits.depthMax + 1);
  // Four positions for each top-level member: name start and end, value start and end.
  const edges: number[] = [];
  let tokens = 1;
  let depth = 1;
  let i = skipSpace(bytes, 0);
  if (bytes[i] !== OPEN_OBJECT) return noObject(bytes, i);
  if (limits.depthMax < 1) return tooDeep(i, limits);
  i++;
  let state = NAME_OR_CLOSE;
  for (;;) {
    i = skipSpace(bytes, i);
    if (i >= length) return notJson(i, length);
    const byte = bytes[i] as number;

    if (state === COMMA_OR_CLOSE && byte === COMMA) {
      state = isArrayAt[depth] === 1 ? VALUE : NAME;
      i++;
      continue;
    }

    const closing = isArrayAt[depth] === 1 ? CLOSE_ARRAY : CLOSE_OBJECT;
    if (byte === closing && state !== VALUE && state !== NAME) {
      depth--;
      if (depth === 0) break;
      i++;
      if (depth === 1) edges.push(i);
      state = COMMA_OR_CLOSE;
      continue;
    }
    if (state === COMMA_OR_CLOSE) return notJson(i, length);

    if (++tokens > limits.tokensMax) return tooManyTokens(i, limits);
    if (state === NAME || state === NAME_OR_CLOSE) {
      if (byte !== QUOTE) return notJson(i, length);
      const nameEnd = skipString(bytes, i);
      if (nameEnd < 0) return notJson(faultPosition(nameEnd), length);
      const colon = skipSpace(bytes, nameEnd);
      if (bytes[colon] !== COLON) return notJson(colon, length);
      const valueStart = skipSpace(bytes, colon + 1);
      if (depth === 1) edges.push(i, nameEnd, valueStart);
      i = valueStart;
      state = VALUE;
      continue;
    }

    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      if (++depth > limits.depthMax) return tooDeep(i, limits);
      isArrayAt[depth] = byte === OPEN_ARRAY ? 1 : 0;
      state = byte === OPEN_ARRAY ? VALUE_OR_CLOSE : NAME_OR_CLOSE;
      i++;
      continue;
    }
    const valueEnd = skipScalar(bytes, i);
    if (valueEnd < 0) return notJson(faultPosition(valueEnd), length);
    if (depth === 1) edges.push(valueEnd);
    i = valueEnd;
    state = COMMA_OR_CLOSE;
  }
  const behind = skipSpace(bytes, i + 1);
  return behind < length ? notJson(behind, length) : nameMembers(bytes, edges, i);
}

/** Names are decoded after the limits have been kept, so that a flood of names costs no more than a flood of values. */
function nameMembers(bytes: Uint8Array, edges: readonly number[], end: number): JsonScan | JsonFault {
  const buffer = asBuffer(bytes);
  const members: JsonMember[] = [];
  const seen = new Set<string>();
  for (let e = 0; e < edges.length; e += 4) {
    const nameStart = edges[e] as number;
    const nameEnd = edges[e + 1] as number;
    const name = decodeString(buffer, nameStart, nameEnd);
    if (name.includes("\ufffd") && !isUtf8(buffer.subarray(nameStart, nameEnd))) {
      return { fault: "not_json", at: nameStart, reason: `The name at byte ${nameStart} is not valid UTF-8.` };
    }
    if (seen.has(name)) {
      return { fault: "duplicate_field", at: nameStart, name, reason: `The name at byte ${nameStart} stands twice.` };
    }
    seen.add(name);
    members.push({ name, nameStart, valueStart: edges[e + 2] as number, valueEnd: edges[e + 3] as number });
  }
  return { members, end };
}

function noObject(bytes: Uint8Array, at: number): JsonFault {
  const reason = startsWithBom(bytes)
    ? "The body begins with a byte order mark."
    : "The body must be one JSON object in UTF-8.";
  return { fault: "not_json", at, reason };
}

function notJson(at: number, length: number): JsonFault {
  const reason = at >= length ? "The JSON ends too early." : `The JSON is broken at byte ${at}.`;
  return { fault: "not_json", at: Math.min(at, length), reason };
}

function tooDeep(at: number, limits: JsonLimits): JsonFault {
  return { fault: "too_deep", at, reason: `The JSON is nested deeper than ${limits.depthMax} levels.` };
}

function tooManyTokens(at: number, limits: JsonLimits): JsonFault {
  return { fault: "too_many_tokens", at, reason: `The JSON has more than ${limits.tokensMax} values and names.` };
}

/** The top-level member of that name, or undefined. */
export function findMember(scan: JsonScan, name: string): JsonMember | undefined {
  return scan.members.find((member) => member.name === name);
}

/** The raw bytes of a top-level member's value (a view of the body), or undefined. */
export function memberValue(body: Uint8Array, scan: JsonScan, name: string): Uint8Array | undefined {
  const member = findMember(scan, name);
  return member && body.subarray(member.valueStart, member.valueEnd);
}

/** What to change at the top level of a body. A name in both is set. */
export interface JsonEdits {
  /** Raw JSON (text or UTF-8) by member name; replaces the value where it stands, or is appended as the last member. */
  readonly set?: Readonly<Record<string, string | Uint8Array>>;
  readonly remove?: readonly string[];
}

/** Bytes [start, end) of the body give way to `text`. */
interface Patch {
  readonly start: number;
  readonly end: number;
  readonly text: string | Uint8Array;
}

/**
 * Changes top-level members and nothing else: every other byte, white space included, stays as it came (promise 6).
 * @param scan of this very body; the result has other offsets and must be scanned again before a further splice.
 * @returns the body itself when nothing changes.
 */
export function spliceJson(body: Uint8Array, scan: JsonScan, edits: JsonEdits): Uint8Array {
  const toSet = new Map(Object.entries(edits.set ?? {}));
  const toRemove = new Set(edits.remove?.filter((name) => !toSet.has(name)));
  const { members } = scan;
  let keptEnd = members.length;
  while (keptEnd > 0 && toRemove.has((members[keptEnd - 1] as JsonMember).name)) keptEnd--;

  const patches: Patch[] = [];
  for (let i = 0; i < keptEnd; i++) {
    const member = members[i] as JsonMember;
    const text = toSet.get(member.name);
    if (text !== undefined) {
      patches.push({ start: member.valueStart, end: member.valueEnd, text });
      toSet.delete(member.name);
    } else if (toRemove.has(member.name)) {
      patches.push({ start: member.nameStart, end: (members[i + 1] as JsonMember).nameStart, text: "" });
    }
  }
  const tail = replaceTail(scan, keptEnd, toSet);
  if (tail.start < tail.end || tail.text !== "") patches.push(tail);
  return applyPatches(body, patches);
}

/** The members from `keptEnd` on go, with the comma before them; what is new stands in their place. */
function replaceTail(scan: JsonScan, keptEnd: number, toAppend: ReadonlyMap<string, string | Uint8Array>): Patch {
  const lastKept = scan.members[keptEnd - 1];
  const start = lastKept?.valueEnd ?? scan.members[0]?.nameStart ?? scan.end;
  const end = scan.members.at(-1)?.valueEnd ?? scan.end;
  const appended = Array.from(toAppend, ([name, value]) => `${JSON.stringify(name)}:${textOf(value)}`).join(",");
  return { start, end, text: appended !== "" && lastKept ? `,${appended}` : appended };
}

function textOf(value: string | Uint8Array): string {
  return typeof value === "string" ? value : asBuffer(value).toString("utf8");
}

/** @param patches in ascending order, not overlapping. */
function applyPatches(body: Uint8Array, patches: readonly Patch[]): Uint8Array {
  if (patches.length === 0) return body;
  const parts: Uint8Array[] = [];
  let from = 0;
  for (const patch of patches) {
    const { text } = patch;
    parts.push(body.subarray(from, patch.start), typeof text === "string" ? Buffer.from(text, "utf8") : text);
    from = patch.end;
  }
  parts.push(body.subarray(from));
  return Buffer.concat(parts);
}
