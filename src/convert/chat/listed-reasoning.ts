/**
 * Reasoning in lists: OpenRouter's `reasoning_details` and LiteLLM's `thinking_blocks` contain the text together with
 * what is signed. Most servers repeat the text in a member of its own (docs/translation-rules.md rule 38).
 */
import { type JsonObject, objectsIn, textOf } from "../../values/json-object.ts";
import { Gathered } from "../reply/gathered.ts";

const LISTS = ["reasoning_details", "thinking_blocks"] as const;
const SEAM = "\n\n";

/**
 * Reads the lists of one reply, whole or in deltas. Only the first list with text is read, because the other repeats
 * it.
 */
export class ListedReasoning {
  #list: (typeof LISTS)[number] | undefined;
  /** The last entry with text. */
  #last: JsonObject | undefined;
  readonly #text = new Gathered();
  #chars = 0;

  /** Whether no list has had text so far. */
  get isEmpty(): boolean {
    return this.#chars === 0;
  }

  /**
   * The reasoning text of a message or delta, "" for none; a blank line separates blocks.
   * @param goesOn whether it directly follows the text before.
   */
  read(message: JsonObject, goesOn: boolean): string {
    this.#list ??= LISTS.find((name) => objectsIn(message[name]).some((entry) => wordsOf(entry) !== undefined));
    const list = this.#list === undefined ? [] : objectsIn(message[this.#list]);
    let words = "";
    let inOneList = false;
    for (const entry of list) {
      const text = wordsOf(entry);
      if (text === undefined) continue;
      const isNext = this.#last !== undefined && isNextBlock(this.#last, entry, inOneList);
      words += isNext && (goesOn || words !== "") ? SEAM + text : text;
      this.#last = entry;
      inOneList = true;
    }
    this.#text.add(words);
    this.#chars += words.length;
    return words;
  }

  /** Whether this equals all text of the lists so far. */
  isRepeatedBy(words: string): boolean {
    return this.#chars === words.length && this.#chars > 0 && this.#text.text() === words;
  }
}

function wordsOf({ text, summary, thinking }: JsonObject): string | undefined {
  return textOf(text) ?? textOf(summary) ?? textOf(thinking);
}

/**
 * Fragments of one block have the same index and type. Without an index, each entry of a list is a block, and the first
 * entry of a delta continues the last block.
 */
function isNextBlock(last: JsonObject, entry: JsonObject, inOneList: boolean): boolean {
  if (last.type !== entry.type) return true;
  return typeof entry.index === "number" ? last.index !== entry.index : inOneList;
}
