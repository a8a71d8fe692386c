/**
 * Most text has at least three bytes per token; digits, punctuation and noise have one. If a text is long enough for
 * this to matter, its tokens are estimated from samples at positions that nobody can predict
 * (docs/decisions/a-hold-follows-what-is-held.md).
 */
import { TextTokens } from "../../values/tokens/text.ts";
import type { ReadingBudget } from "./pdf-size.ts";

/** Shorter texts cost little at any density. */
const TEXT_BYTES_MIN = 4_096;
/** Sampling a body at this many positions takes some 50 us. */
const WINDOWS = 64;
const WINDOW_CHARS = 256;
/** Walking this many takes some milliseconds; long conversations with a hundred tools have 20,000. */
const JSON_TOKENS_MAX = 50_000;
/** Characters counted for a number, a JSON literal, or the punctuation around a value. */
const PLAIN_CHARS = 4;

/** Strings of a body that are media: by the object that holds them, the names of its members. */
type MediaPlaces = ReadonlyMap<object, readonly string[]>;

/**
 * Tokens of the text of a body, estimated from a sample of its characters.
 * @param json the body, parsed.
 * @param size `textBytes`: bytes of it that are not media; `jsonTokens`: number of its names and values.
 * @param media strings that are skipped.
 * @returns 0 if the text is short; one token per byte if it has too many values to be sampled.
 */
export function bodyTokens(
  json: object,
  { textBytes, jsonTokens }: { readonly textBytes: number; readonly jsonTokens: number },
  media: MediaPlaces,
): number {
  if (textBytes < TEXT_BYTES_MIN) return 0;
  if (jsonTokens > JSON_TOKENS_MAX) return textBytes;
  const sample = new Sample(textBytes / WINDOWS);
  const pending: unknown[] = [json];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value === "string") sample.pass(value);
    else if (Array.isArray(value)) for (const item of value) pending.push(item);
    else if (typeof value === "object" && value !== null) {
      const not = media.get(value);
      for (const name in value) {
        sample.pass(name);
        if (!not?.includes(name)) pending.push((value as Record<string, unknown>)[name]);
      }
    } else sample.passPlain(value);
  }
  return sample.tokens();
}

/** Counts the characters that pass by, and samples one window at a random position in each stride. */
class Sample {
  readonly #stride: number;
  readonly #text = new TextTokens();
  #weighed = 0;
  #passed = 0;
  #next: number;

  constructor(stride: number) {
    this.#stride = Math.max(stride, WINDOW_CHARS);
    this.#next = Math.random() * this.#stride;
  }

  pass(text: string): void {
    const start = this.#passed;
    this.#passed += text.length;
    while (this.#next < this.#passed) {
      const from = Math.floor(this.#next - start);
      const window = text.slice(from, from + WINDOW_CHARS);
      this.#weigh(window, window.length);
    }
  }

  passPlain(value: unknown): void {
    this.#passed += PLAIN_CHARS;
    while (this.#next < this.#passed) this.#weigh(`${value},`, PLAIN_CHARS);
  }

  #weigh(text: string, chars: number): void {
    this.#text.add(text);
    this.#weighed += chars;
    this.#next = (Math.floor(this.#next / this.#stride) + 1 + Math.random()) * this.#stride;
  }

  tokens(): number {
    return this.#weighed === 0 ? 0 : Math.ceil((this.#text.tokens / this.#weighed) * this.#passed);
  }
}

/** The default of `input_bytes_per_token`. The model's own value is not known here. */
const TEXT_BYTES_PER_TOKEN = 3;
/** One sample per this many bytes of a file, up to the maximum below. */
const BYTES_PER_WINDOW = 2_048;
const FILE_WINDOWS_MAX = 32;

/**
 * Tokens of a text file: at least one per three bytes, and more if a sample shows a higher density. One per byte once
 * the budget is used up.
 */
export function textTokens(text: Buffer, budget: ReadingBudget): number {
  const least = Math.ceil(text.length / TEXT_BYTES_PER_TOKEN);
  if (text.length < TEXT_BYTES_MIN) return least;
  const windows = Math.min(FILE_WINDOWS_MAX, Math.ceil(text.length / BYTES_PER_WINDOW));
  budget.windows -= windows;
  if (budget.windows < 0) return text.length;
  const tokens = new TextTokens();
  const stride = text.length / windows;
  let weighed = 0;
  for (let i = 0; i < windows; i++) {
    const at = Math.floor((i + Math.random()) * stride);
    const window = text.subarray(at, at + WINDOW_CHARS);
    // A character that is cut off at either end is dropped.
    tokens.add(window.toString("utf8").replace(/^\ufffd+|\ufffd+$/g, ""));
    weighed += window.length;
  }
  return Math.max(least, Math.ceil((tokens.tokens / weighed) * text.length));
}
