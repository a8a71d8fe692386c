/**
 * The free text inside the arguments of a freeform tool that an upstream was offered as a function
 * (docs/translation-rules.md rule 33): `{"input": "…"}` is read as it comes, so that a client sees a patch grow as it
 * would with its own vendor. A stream and a whole reply are read by the same rules, also where the arguments are cut.
 */

/** What the arguments begin with, blanks aside. */
const OPENING = '{"input":"';
const BLANKS: ReadonlySet<string> = new Set([" ", "\t", "\n", "\r"]);

/** What stands behind a backslash, but for `u`. */
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
  /** How much of the opening has been seen. */
  #opened = 0;
  /** An escape that is not complete yet, from its backslash on. */
  #escape = "";
  /** The first half of a character that needs two; it waits for the second. */
  #half = "";

  /** Whether the arguments are what a freeform call's should be, as far as they are known. */
  get isKnown(): boolean {
    return this.#state === "text" || this.#state === "over";
  }

  /** Takes the next piece of the arguments; gives the text that it completes. */
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

  /** The arguments have ended; gives what has waited, where they were cut. */
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
    // Blanks may stand everywhere but inside the name.
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
    // What is no escape is text as it stands: a model that forgets to escape a backslash means one.
    return this.#unescaped((this.#escape.length === 2 && ESCAPES.get(char)) || this.#escape);
  }

  #unescaped(text: string): string {
    this.#escape = "";
    return text;
  }
}

/** The free text of whole arguments; undefined where they are something else. */
export function freeformText(upstreamArguments: string): string | undefined {
  const input = new FreeformInput();
  const text = input.push(upstreamArguments);
  return input.isKnown ? text + input.end() : undefined;
}
