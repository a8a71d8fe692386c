/** Text that arrives in many pieces and is needed as a whole at the end. */

/**
 * Pieces before they are joined. A million one-letter deltas would otherwise become a string of a million linked parts.
 */
const PIECES_MAX = 1_024;

/** Joins pieces in linear time, with about as much memory as the text itself (docs/failure-model.md row 68). */
export class Gathered {
  #joined = "";
  #pieces: string[] = [];

  /** Whether only empty pieces have been added. */
  get isEmpty(): boolean {
    return this.#joined === "" && this.#pieces.length === 0;
  }

  add(piece: string): void {
    if (piece === "") return;
    this.#pieces.push(piece);
    if (this.#pieces.length >= PIECES_MAX) this.#join();
  }

  #join(): void {
    this.#joined += this.#pieces.join("");
    this.#pieces = [];
  }

  /** All text so far. */
  text(): string {
    this.#join();
    return this.#joined;
  }
}

/* Finds the end of a JSON object that arrives in fragments. */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: ReadonlySet<number> = new Set([0x7b, 0x5b]);
const CLOSING: ReadonlySet<number> = new Set([0x7d, 0x5d]);
const BLANK: ReadonlySet<number> = new Set([0x20, 0x0a, 0x0d, 0x09]);
const BRACE = 0x7b;

/**
 * Counts brackets outside of strings, each character once, so that a delta does not require parsing everything before
 * it (docs/failure-model.md row 68). It finds where an object ends, not whether it is well-formed.
 */
export class ObjectEnd {
  #depth = 0;
  #inString = false;
  #escaped = false;
  #state: "before" | "within" | "complete" | "hopeless" = "before";

  /** Whether one object has ended and only blanks followed. */
  get isComplete(): boolean {
    return this.#state === "complete";
  }

  feed(fragment: string): void {
    for (let i = 0; i < fragment.length && this.#state !== "hopeless"; i++) this.#step(fragment.charCodeAt(i));
  }

  #step(code: number): void {
    if (this.#state === "within") {
      this.#stepWithin(code);
    } else if (this.#state === "before" && code === BRACE) {
      this.#state = "within";
      this.#depth = 1;
    } else if (!BLANK.has(code)) {
      this.#state = "hopeless";
    }
  }

  #stepWithin(code: number): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (code === BACKSLASH) this.#escaped = true;
      else if (code === QUOTE) this.#inString = false;
      return;
    }
    if (code === QUOTE) this.#inString = true;
    else if (OPENING.has(code)) this.#depth++;
    else if (CLOSING.has(code) && --this.#depth === 0) this.#state = "complete";
  }
}
