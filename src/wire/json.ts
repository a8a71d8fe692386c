/**
 * JSON at the level of bytes: the entry point of this folder, and the functions that find top-level members and let a
 * rule splice one of them without touching the others (ARCHITECTURE.md promise 6).
 */
import type { JsonMember, JsonScan } from "./json-scan.ts";
import { BACKSLASH } from "./json-tokens.ts";
import { asBuffer } from "./utf8.ts";

export { type MemberCut, withoutMembers } from "./json-cut.ts";
export { findDoubledName } from "./json-doubled.ts";
export { JSON_LIMITS, type JsonFault, type JsonLimits } from "./json-fault.ts";
export { countNames, hasMoreNames, type NameLimits } from "./json-names.ts";
export {
  elementSpans,
  findMembers,
  findNested,
  type JsonSpan,
  type MemberSpan,
  memberSpans,
  spliceNested,
  visitNames,
} from "./json-nested.ts";
export {
  type Pause,
  type ReadJson,
  readJson,
  readJsonInSteps,
  type StepSizes,
  scanJsonInSteps,
  setOwn,
} from "./json-pieces.ts";
export { findPlaces, replacePlaces, type WantedPlaces } from "./json-places.ts";
export { isJsonFault, type JsonMember, type JsonScan, scanJson } from "./json-scan.ts";
export { decodeUtf8 } from "./utf8.ts";

/**
 * Whether a string of a JSON text may hold these words (ASCII letters and signs that need no escape): they occur
 * literally, or there are escapes with which any of them could be written.
 */
export function mayHoldText(json: Uint8Array, words: string): boolean {
  const buffer = asBuffer(json);
  if (buffer.indexOf(words) >= 0) return true;
  const first = buffer.indexOf("\\u00");
  return first >= 0 && hasPrintableEscape(json, first);
}

/**
 * Whether these ASCII words are in a JSON text, each letter as it is or as its escape. One loop: megabytes of escapes,
 * as some encoders write them, take 1 to 2 ns per byte.
 * @param words must not repeat their first letter, because a search that fails restarts only at that letter.
 */
export function holdsText(json: Uint8Array, words: string): boolean {
  const buffer = asBuffer(json);
  if (buffer.indexOf(words) >= 0) return true;
  if (buffer.indexOf("\\u00") < 0) return false;
  let met = 0;
  for (let at = 0; at < json.length; at++) {
    let code = json[at] as number;
    if (code === BACKSLASH) {
      at++;
      code = json[at] === LETTER_U ? escapedCode(json, at) : 0;
      if (json[at] === LETTER_U) at += 4;
    }
    met = code === words.charCodeAt(met) ? met + 1 : code === words.charCodeAt(0) ? 1 : 0;
    if (met === words.length) return true;
  }
  return false;
}

/** Size of the pieces in which a text is converted to strings. */
const PIECE_BYTES = 65_536;
/** A match may begin in one piece and end in the next. */
const MATCH_BYTES_MAX = 64;

/**
 * Whether a JSON text holds a match. For ten words this is faster than ten searches: 1.4 us for 2 KB instead of 5.6.
 * @param words in ASCII, without flags, anchors or lookbehind; matches at most 64 bytes.
 */
export function holdsMatch(json: Uint8Array, words: RegExp): boolean {
  const buffer = asBuffer(json);
  for (let at = 0; at < buffer.length; at += PIECE_BYTES) {
    if (words.test(buffer.toString("latin1", at, at + PIECE_BYTES + MATCH_BYTES_MAX))) return true;
  }
  return false;
}

/** The ASCII code of an escape; 0 for all others. @param at the position of its u. */
function escapedCode(json: Uint8Array, at: number): number {
  if (json[at + 1] !== ZERO || json[at + 2] !== ZERO) return 0;
  return (hexDigit(json[at + 3] ?? 0) << 4) | hexDigit(json[at + 4] ?? 0);
}

function hexDigit(byte: number): number {
  return byte <= 0x39 ? byte - ZERO : (byte & 0x5f) - 0x37;
}

const LETTER_U = 0x75;
const ZERO = 0x30;

/**
 * Whether there is an escape of U+0020 to U+007F; escapes of control characters occur in all terminal output. One loop
 * takes half the time of a search for each of their six prefixes: 1 to 2 ms for a megabyte of escapes.
 */
function hasPrintableEscape(json: Uint8Array, from: number): boolean {
  for (let i = from; i < json.length; i++) {
    if (json[i] !== BACKSLASH) continue;
    i++;
    if (json[i] !== LETTER_U || json[i + 1] !== ZERO || json[i + 2] !== ZERO) continue;
    const digit = json[i + 3] ?? 0;
    if (digit >= 0x32 && digit <= 0x37) return true;
  }
  return false;
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

/** The changes at the top level of a body. A name in both is set. */
interface JsonEdits {
  /** Raw JSON (text or UTF-8) by member name; replaces the value in place, or is appended as the last member. */
  readonly set?: Readonly<Record<string, string | Uint8Array>>;
  readonly remove?: readonly string[];
}

/** Replaces bytes [start, end) of the body with `text`. */
interface Patch {
  readonly start: number;
  readonly end: number;
  readonly text: string | Uint8Array;
}

/**
 * Changes top-level members and nothing else: every other byte, including white space, is preserved (promise 6).
 * @param scan of this same body. The result has other offsets and must be scanned again before a further splice.
 * @returns the body itself if nothing changes.
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

/** Replaces the members from `keptEnd` on, and the comma before them, with the new ones. */
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
