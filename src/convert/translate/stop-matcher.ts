/**
 * Finds the first stop string in text that arrives in pieces, in linear time (Knuth-Morris-Pratt, once per string),
 * because clients choose the strings and, through the model, the text.
 */

/** The most stop strings that can be watched for, and the most characters that they may have together. */
export const STOPS_MAX = 64;
export const STOP_CHARS_MAX = 65_536;

/** Whether these stop strings are within the limits. */
export function areWatchable(stops: readonly string[]): boolean {
  return stops.length <= STOPS_MAX && stops.reduce((sum, stop) => sum + stop.length, 0) <= STOP_CHARS_MAX;
}

interface Pattern {
  readonly stop: string;
  /** For each length of a match: the length that still matches when the next character does not. */
  readonly borders: Int32Array;
  matched: number;
}

export class StopMatcher {
  readonly #patterns: readonly Pattern[];

  /** @param stops empty ones match nothing. */
  constructor(stops: readonly string[]) {
    this.#patterns = stops
      .filter((stop) => stop !== "")
      .map((stop) => ({ stop, borders: bordersOf(stop), matched: 0 }));
  }

  get isEmpty(): boolean {
    return this.#patterns.length === 0;
  }

  /** The number of characters at the end of the text so far that are the beginning of a stop string. */
  get tail(): number {
    return this.#patterns.reduce((longest, { matched }) => Math.max(longest, matched), 0);
  }

  /** Forgets the text so far. */
  reset(): void {
    for (const pattern of this.#patterns) pattern.matched = 0;
  }

  /**
   * Searches the next piece of the text.
   * @returns the stop string that was complete first (of two that end together, the longer one) and the position after
   * it in this piece; independent of how the text was split.
   */
  search(piece: string): { readonly stop: string; readonly end: number } | undefined {
    for (let i = 0; i < piece.length; i++) {
      const stop = this.#advance(piece.charCodeAt(i));
      if (stop !== undefined) return { stop, end: i + 1 };
    }
    return undefined;
  }

  #advance(code: number): string | undefined {
    let longest: string | undefined;
    for (const pattern of this.#patterns) {
      step(pattern, code);
      if (pattern.matched < pattern.stop.length) continue;
      if (longest === undefined || pattern.stop.length > longest.length) longest = pattern.stop;
    }
    return longest;
  }
}

function step(pattern: Pattern, code: number): void {
  const { stop, borders } = pattern;
  while (pattern.matched > 0 && stop.charCodeAt(pattern.matched) !== code) {
    pattern.matched = borders[pattern.matched - 1] ?? 0;
  }
  if (stop.charCodeAt(pattern.matched) === code) pattern.matched++;
}

/** For each prefix of the text: the length of the longest shorter prefix that it ends with. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length);
  let length = 0;
  for (let i = 1; i < text.length; i++) {
    while (length > 0 && text.charCodeAt(i) !== text.charCodeAt(length)) length = borders[length - 1] ?? 0;
    if (text.charCodeAt(i) === text.charCodeAt(length)) length++;
    borders[i] = length;
  }
  return borders;
}
