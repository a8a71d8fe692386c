/**
 * Reasoning that a chat server leaves in the text, between tags: `<think>` of open models that are served without a
 * parser for it, `<thought>` of Gemini (docs/translation-rules.md rule 39). Only the beginning of a message can be
 * reasoning: a tag that the model writes later is text. A tag may be split anywhere.
 */

const OPENING = ["<think>", "<thought>"] as const;
const CLOSING = ["</think>", "</thought>"] as const;

/**
 * The most blanks before a tag. They are held back and examined again with each piece (docs/failure-model.md row 68).
 */
const BLANKS_MAX = 256;

/** Reasoning and text of a piece; the reasoning comes first. */
interface SplitText {
  readonly reasoning: string;
  readonly text: string;
}

export class ThinkSplitter {
  readonly #opensInside: boolean;
  #state: "opening" | "thinking" | "gap" | "text" = "opening";
  /** Characters that could still become a tag, or blanks before the first word. */
  #held = "";

  /** @param form `unopened`: the opening tag is in the server's prompt, so the text begins inside the tags. */
  constructor(form: "tags" | "unopened") {
    this.#opensInside = form === "unopened";
  }

  /** Whether everything that follows is text. */
  get isThrough(): boolean {
    return this.#state === "text";
  }

  /** Takes the next piece of the text. */
  push(piece: string): SplitText {
    if (this.#state === "text") return { reasoning: "", text: piece };
    this.#held += piece;
    if (this.#state === "opening" && !this.#open()) return NOTHING;
    const reasoning = this.#state === "thinking" ? this.#think() : "";
    return { reasoning, text: this.#speak() };
  }

  /** The text ends, or something else follows; returns what was held back. */
  end(): SplitText {
    const held = this.#held;
    const isThought = this.#state === "thinking" || (this.#state === "opening" && this.#opensInside);
    this.#held = "";
    this.#state = "text";
    return isThought ? { reasoning: held, text: "" } : { reasoning: "", text: held };
  }

  /** Looks for the opening tag. @returns false while more text is needed to decide. */
  #open(): boolean {
    const begun = this.#held.trimStart();
    const tag = OPENING.find((one) => begun.startsWith(one));
    const isBlank = begun === "" && this.#held.length > BLANKS_MAX;
    if (tag === undefined && !isBlank && OPENING.some((one) => one.startsWith(begun))) return false;
    if (tag !== undefined) this.#held = begun.slice(tag.length);
    this.#state = tag !== undefined || this.#opensInside ? "thinking" : "text";
    return true;
  }

  #think(): string {
    const ends = CLOSING.map((tag) => ({ tag, at: this.#held.indexOf(tag) })).filter(({ at }) => at >= 0);
    const [first] = ends.sort((one, other) => one.at - other.at);
    const end = first ? first.at : this.#held.length - tailOfTag(this.#held);
    const reasoning = this.#held.slice(0, end);
    this.#held = this.#held.slice(first ? end + first.tag.length : end);
    if (first) this.#state = "gap";
    return reasoning;
  }

  /** Blank lines between reasoning and answer belong to neither. */
  #speak(): string {
    if (this.#state === "thinking") return "";
    const text = this.#state === "gap" ? this.#held.trimStart() : this.#held;
    this.#held = "";
    if (text !== "") this.#state = "text";
    return text;
  }
}

const NOTHING: SplitText = Object.freeze({ reasoning: "", text: "" });

/** The number of characters at the end that could be the beginning of a closing tag. */
function tailOfTag(text: string): number {
  const from = text.lastIndexOf("<");
  const tail = from < 0 ? "" : text.slice(from);
  return tail !== "" && CLOSING.some((tag) => tag.startsWith(tail)) ? tail.length : 0;
}

/** A whole text, split. */
export function splitThinking(form: "none" | "tags" | "unopened", text: string): SplitText {
  if (form === "none") return { reasoning: "", text };
  const splitter = new ThinkSplitter(form);
  const begun = splitter.push(text);
  const rest = splitter.end();
  return { reasoning: begun.reasoning + rest.reasoning, text: begun.text + rest.text };
}
