/**
 * Reasoning that comes in lists alone: OpenRouter's `reasoning_details` and LiteLLM's `thinking_blocks` hold the words beside what
 * is signed, and most servers repeat them in a member of their own (docs/translation-rules.md rule 38).
 */
import { type JsonObject, objectsIn, textOf } from "../../values/json-object.ts";
import { Gathered } from "../reply/gathered.ts";

const LISTS = ["reasoning_details", "thinking_blocks"] as const;
const SEAM = "\n\n";

/** Reads the lists of one reply, whole or in deltas. The first list that has words is read, since the other repeats them. */
export class ListedReasoning {
  #list: (typeof LISTS)[number] | undefined;
  /** The entry whose words came last. */
  #last: JsonObject | undefined;
  readonly #said = new Gathered();
  #chars = 0;

  /** Whether no list has said anything so far. */
  get isEmpty(): boolean {
    return this.#chars === 0;
  }

  /**
   * The words of a message or delta, "" for none; a blank line parts blocks.
   * @param goesOn whether they are said right after those before.
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
    this.#said.add(words);
    this.#chars += words.length;
    return words;
  }

  /** Whether this is all that the lists have said so far. */
  isRepeatedBy(words: string): boolean {
    return this.#chars === words.length && this.#chars > 0 && this.#said.text() === words;
  }
}

function wordsOf({ text, summary, thinking }: JsonObject): string | undefined {
  return textOf(text) ?? textOf(summary) ?? textOf(thinking);
}

/** Fragments of one block have its index and type; without an index each entry of a list is a block, and a delta goes on. */
function isNextBlock(last: JsonObject, entry: JsonObject, inOneList: boolean): boolean {
  if (last.type !== entry.type) return true;
  return typeof entry.index === "number" ? last.index !== entry.index : inOneList;
}
