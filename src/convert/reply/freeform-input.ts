/**
 * Reads the free text inside the arguments of a freeform tool that an upstream was offered as a function
 * (docs/translation-rules.md rule 33). `{"input": "…"}` is read incrementally, so the client sees a patch grow as with
 * its own vendor. Streams and whole replies are read by the same rules, even if the arguments are cut.
 */

/** The beginning of the arguments, without blanks. */
const OPENING = '{"input":"';
const BLANKS: ReadonlySet<string> = new Set([" ", "\t", "\n", "\r"]);

/** Characters that may follow a backslash, except `u`. */
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ["\\", "\\"],
  ["/", "/"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
]);

const HEX = /^[0-9a-fA-F]$/;

export class FreeformInput {
  #state: "opening" | "text" | "over" | "other" = "opening";
  /** Number of characters of the opening that have been seen. */
  #opened = 0;
  /** An incomplete escape, from its backslash on. */
  #escape = "";
  /** The first half of a surrogate pair; it waits for the second. */
  #half = "";

  /** Whether the arguments so far have the form of a freeform call's. */
  get isKnown(): boolean {
    return this.#state === "text" || this.#state === "over";
  }

  /** Takes the next piece of the arguments; returns the text that it completes. */
  push(piece: string): string {
    let text = "";
    for (let i = 0; i < piece.length && this.#state !== "over" && this.#state !== "other"; i++) {
      const char = piece[i] as string;
      if (this.#state === "opening") this.#open(char);
      else text += this.#read(char);
    }
    const whole = this.#half + text;
    const last = whole.charCodeAt(whole.length - 1);
    const isHalf = this.#state === "text" && last >= 0xd800 && last <= 0xdbff;
    this.#half = isHalf ? whole.slice(-1) : "";
    return isHalf ? whole.slice(0, -1) : whole;
  }

  /** The arguments have ended; returns what was held back if they were cut. */
  end(): string {
    const rest = this.#half + this.#escape;
    this.#half = "";
    this.#escape = "";
    if (this.#state === "text") this.#state = "over";
    return rest;
  }

  #open(char: string): void {
    if (char === OPENING[this.#opened]) {
      this.#opened++;
      if (this.#opened === OPENING.length) this.#state = "text";
      return;
    }
    // Blanks are allowed everywhere except inside the name.
    const inName = this.#opened > 1 && this.#opened < '{"input"'.length;
    if (inName || !BLANKS.has(char)) this.#state = "other";
  }

  #read(char: string): string {
    if (this.#escape === "") {
      if (char === '"') this.#state = "over";
      else if (char === "\\") this.#escape = char;
      else return char;
      return "";
    }
    if (char === '"' && this.#escape.length > 1) {
      this.#state = "over";
      return this.#unescaped(this.#escape);
    }
    this.#escape += char;
    if (this.#escape.startsWith("\\u") && (this.#escape.length === 2 || HEX.test(char))) {
      if (this.#escape.length < 6) return "";
      return this.#unescaped(String.fromCharCode(Number.parseInt(this.#escape.slice(2), 16)));
    }
    // An invalid escape is read as text: a model that forgets to escape a backslash means one.
    return this.#unescaped((this.#escape.length === 2 && ESCAPES.get(char)) || this.#escape);
  }

  #unescaped(text: string): string {
    this.#escape = "";
    return text;
  }
}

/** The free text of whole arguments; undefined if they have another form. */
export function freeformText(upstreamArguments: string): string | undefined {
  const input = new FreeformInput();
  const text = input.push(upstreamArguments);
  return input.isKnown ? text + input.end() : undefined;
}
