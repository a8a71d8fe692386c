/**
 * What a model has produced, counted as it goes by: what a reply is billed by where its upstream gives no count. The
 * figures per character are those of public tokenizers, the dearer one where they differ, so that no script, number or
 * code costs less than it should (docs/decisions/what-leaving-costs.md has the table).
 */
import { type JsonObject, objectOf } from "./json-object.ts";

/** What is known of a reply's output by looking at it. */
export interface ProducedCounts {
  /** UTF-8 bytes of text, reasoning, refusal, tool calls and all other output. */
  readonly bytes: number;
  /** Tokens, estimated from the characters. */
  readonly tokens: number;
  /** Events that held any output: each holds a token at least. */
  readonly deltas: number;
}

export const NOTHING_PRODUCED: ProducedCounts = Object.freeze({ bytes: 0, tokens: 0, deltas: 0 });

/** Where a text is in a buffer, and whether each of its bytes is a character. */
export interface TextPlace {
  readonly textStart: number;
  readonly textEnd: number;
  readonly isAscii: boolean;
}

/** Counts the output of one stream, event by event. */
export interface OutputCounter {
  /** Another delta with no other output than these bytes of a text. */
  again(source: Buffer, { textStart, textEnd, isAscii }: TextPlace): void;
  /**
   * Looks at one event.
   * @param type its `type`, for protocols that have one.
   * @returns whether it holds any output.
   */
  see(type: unknown, payload: JsonObject): boolean;
  counts(): ProducedCounts;
}

/** Kinds of characters; `WIDE` is everything beyond ASCII. */
const LOWER = 1;
const UPPER = 2;
const DIGIT = 3;
const BLANK = 4;
const LINE = 5;
const SIGN = 6;
const WIDE = 7;

const KINDS: Uint8Array = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code >= 0x61 && code <= 0x7a) return LOWER;
  if (code >= 0x41 && code <= 0x5a) return UPPER;
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  if (code === 0x20 || code === 0x09) return BLANK;
  return code === 0x0a || code === 0x0d ? LINE : SIGN;
});

/** Weights are twentieths of a token. */
const PARTS_PER_TOKEN = 20;

/** UTF-16 units beyond ASCII: what each weighs, up to the code named (excluded). */
const WIDE_WEIGHTS: readonly (readonly [below: number, weight: number])[] = [
  [0x0250, 12], // Latin with accents
  [0x0400, 20], // Greek
  [0x0530, 11], // Cyrillic
  [0x0700, 20], // Hebrew, Arabic
  [0x0e00, 21], // the scripts of India
  [0x2000, 24], // Thai and others of Asia
  [0x2030, 20], // dashes, quotes
  [0x3000, 40], // arrows, mathematics
  [0x3400, 22], // Kana
  [0x4e00, 45], // rare Han
  [0xa000, 23], // Han
  [0xac00, 60], // rare scripts: a token for each byte
  [0xd7b0, 21], // Hangul
  [0xd800, 60],
  [0xe000, 29], // half of a surrogate pair: emoji, rarer still
  [0xff00, 60],
  [0xfff0, 24], // full width
  [0x10000, 60],
];

/** Letters in a row above which they are no word but noise, of which a token holds two. */
const WORD_LETTERS_MAX = 12;

/** Characters per token of what cannot be read (sealed reasoning: base64 of its text). */
const OPAQUE_CHARS_PER_TOKEN = 4;
/** Characters of base64 per token of an image or of sound; public figures go from 60 to 3,000. */
const MEDIA_CHARS_PER_TOKEN = 64;
const DATA_URL = "data:";
/** Values of one unknown member that are looked at. */
const VALUES_MAX = 10_000;

/** One per reply. The result does not depend on how its text was cut into deltas. */
export class Produced {
  #bytes = 0;
  #weight = 0;
  #deltas = 0;
  #before = LINE;
  #codeBefore = 0;
  /** Letters, or digits, in a row. */
  #run = 0;

  /** What has been seen so far. */
  counts(): ProducedCounts {
    const tokens = Math.ceil(this.#weight / PARTS_PER_TOKEN);
    return { bytes: this.#bytes, tokens, deltas: this.#deltas };
  }

  /** Counts text. @returns whether there was any. */
  text(value: unknown): boolean {
    if (typeof value !== "string" || value === "") return false;
    this.#bytes += Buffer.byteLength(value);
    for (let i = 0; i < value.length; i++) this.#weight += this.#weigh(value.charCodeAt(i));
    return true;
  }

  /**
   * Counts text that is not a string yet.
   * @param isAscii whether each byte is a character.
   */
  bytes(source: Buffer, start: number, end: number, isAscii: boolean): void {
    if (!isAscii) {
      this.text(source.toString("utf8", start, end));
      return;
    }
    this.#bytes += end - start;
    for (let i = start; i < end; i++) this.#weight += this.#weigh(source[i] as number);
  }

  /** Counts what only the upstream can read, such as sealed reasoning. @returns whether there was any. */
  opaque(value: unknown): boolean {
    return this.#lump(value, OPAQUE_CHARS_PER_TOKEN);
  }

  /** Counts an image or sound in base64. @returns whether there was any. */
  media(value: unknown): boolean {
    return this.#lump(value, MEDIA_CHARS_PER_TOKEN);
  }

  #lump(value: unknown, charsPerToken: number): boolean {
    if (typeof value !== "string" || value === "") return false;
    this.#bytes += Buffer.byteLength(value);
    this.#weight += (value.length * PARTS_PER_TOKEN) / charsPerToken;
    return true;
  }

  /**
   * Counts a member of unknown form, down to its last string. Members that are bookkeeping everywhere are left out. A
   * number on its own is a place or a state; in a list it is output.
   * @returns whether anything in it is output.
   */
  unknown(value: unknown): boolean {
    const pending: unknown[] = [value];
    let found = false;
    for (let looked = 0; pending.length > 0 && looked < VALUES_MAX; looked++) {
      const next = pending.pop();
      if (typeof next === "string") found = (next.startsWith(DATA_URL) ? this.media(next) : this.text(next)) || found;
      else if (Array.isArray(next)) {
        for (let i = next.length - 1; i >= 0; i--) pending.push(typeof next[i] === "number" ? `${next[i]} ` : next[i]);
      } else {
        const object = objectOf(next);
        if (object) for (const name of Object.keys(object).reverse()) if (!isLabel(name)) pending.push(object[name]);
      }
    }
    return found;
  }

  /** Notes that an event held output. */
  noteDelta(): void {
    this.#deltas++;
  }

  #weigh(code: number): number {
    const kind = code < 128 ? (KINDS[code] as number) : WIDE;
    const before = this.#before;
    const run = this.#run;
    const isRepeated = code === this.#codeBefore;
    const wasLetter = before === LOWER || before === UPPER;
    const isLetter = kind === LOWER || kind === UPPER;
    this.#run = (isLetter && wasLetter) || (kind === DIGIT && before === DIGIT) ? run + 1 : 1;
    this.#before = kind;
    this.#codeBefore = code;
    switch (kind) {
      case LOWER:
        return (this.#run > WORD_LETTERS_MAX && !isRepeated ? 11 : 5) + (before === DIGIT ? 15 : 0);
      case UPPER:
        return before === LOWER ? 25 : before === UPPER ? 8 : before === DIGIT ? 20 : 6;
      case DIGIT:
        return before === DIGIT ? 8 : wasLetter ? 20 : 12;
      case BLANK:
      case LINE:
        return blankWeight(kind, before, (wasLetter || before === DIGIT) && run === 1);
      case SIGN:
        return isRepeated ? 3 : before === SIGN ? 13 : 9;
      default:
        return wideWeight(code);
    }
  }
}

/** @param behindOne whether a single letter or digit comes before it: then both are tokens of their own. */
function blankWeight(kind: number, before: number, behindOne: boolean): number {
  const first = before !== BLANK && before !== LINE;
  const own = kind === LINE ? (before === LINE ? 1 : 15) : first ? 5 : 1;
  return own + (behindOne ? 10 : 0);
}

function wideWeight(code: number): number {
  for (const [below, weight] of WIDE_WEIGHTS) if (code < below) return weight;
  return 60;
}

/** Members that name, place or date something, in every protocol and at every depth. */
const LABELS: ReadonlySet<string> = new Set([
  ...["id", "type", "object", "index", "role", "status", "created", "created_at", "expires_at", "model", "phase"],
  ...["name", "call_id", "item_id", "tool_use_id", "tool_call_id", "response_id", "output_index", "content_index"],
  ...["format", "mime_type", "media_type", "detail", "signature", "thought_signature", "caller", "cache_control"],
  ...["obfuscation", "padding", "usage", "logprobs", "service_tier", "system_fingerprint", "finish_reason"],
]);

function isLabel(name: string): boolean {
  return LABELS.has(name);
}

/**
 * Counts every member of an object that is neither known nor a label.
 * @param known members that have been looked at already, or that are bookkeeping here.
 * @returns whether any of them is output.
 */
export function countUnknown(produced: Produced, object: JsonObject, known: ReadonlySet<string>): boolean {
  let found = false;
  for (const name of Object.keys(object)) {
    if (known.has(name) || isLabel(name)) continue;
    found = produced.unknown(object[name]) || found;
  }
  return found;
}
