/**
 * The usage of a chat stream from its chunks (docs/usage-forms.md): at the end, in the last chunk with content, in each
 * chunk, inside the choices, once or more often. Counts in a stream are snapshots of what has been used so far, so a later
 * one replaces an earlier one and nothing is added up but the choices.
 */

import { type JsonObject, objectOf, objectsIn } from "../../values/json-object.ts";
import { totalInput, type Usage } from "../../values/tokens/usage.ts";
import { mergedCalls } from "../included-usage.ts";
import { citesTheWeb, joinedUsage, readReplyUsage, readUsage, withSearch } from "./usage.ts";

/** Choices that are counted separately; the protocol has no more. */
export const CHOICES_MAX = 128;

export class ChatStreamUsage {
  readonly #asked: number;
  /** What was said of the whole reply, beside no choice or beside the only one. */
  #whole: Usage | undefined;
  /** What was said of each of several choices. */
  readonly #ofChoice = new Map<number, Usage>();
  /** The last count that was said beside a choice, of it alone or of all so far. */
  #beside: Usage | undefined;
  /** Whether each such count was above the one before it, as where one counter counts all choices. */
  #oneCounter = true;
  /** Whether the whole was counted after the choices. */
  #wholeIsLast = false;
  readonly #seen = new Set<number>();
  readonly #finished = new Set<number>();
  /** Choices of which something has been produced that no count has included yet. */
  readonly #behind = new Set<number>();
  /** Whether a source on the web was named. */
  #cited = false;
  #ended = false;

  /** @param choices how many the client asked for (`n`). */
  constructor(choices: number) {
    this.#asked = choices;
  }

  /**
   * Looks at a chunk.
   * @param produced whether anything of the model's is in it.
   */
  see(chunk: JsonObject, produced: boolean): void {
    const choices = objectsIn(chunk.choices);
    if (produced) for (const choice of choices) this.#noteProduced(indexOf(choice));
    for (const choice of choices) {
      this.#noteChoice(indexOf(choice), typeof choice.finish_reason === "string" && choice.finish_reason !== "");
      const own = readUsage(choice.usage);
      if (!own) continue;
      this.#oneCounter = false;
      this.#noteOfChoice(indexOf(choice), own);
    }
    const usage = readReplyUsage(chunk);
    const [only] = choices;
    if (usage && only && this.#asked > 1 && choices.length === 1) this.#noteBeside(indexOf(only), usage, produced);
    else if (usage) this.#noteWhole(usage);
    this.#cited ||= choices.some((choice) => citesTheWeb(objectOf(choice.delta)));
  }

  #noteProduced(index: number): void {
    if (this.#behind.size < CHOICES_MAX) this.#behind.add(index);
  }

  #noteChoice(index: number, finished: boolean): void {
    if (this.#seen.size < CHOICES_MAX) this.#seen.add(index);
    if (finished && this.#finished.size < CHOICES_MAX) this.#finished.add(index);
  }

  #noteWhole(usage: Usage): void {
    this.#whole = laterUsage(this.#whole, usage);
    this.#wholeIsLast = true;
    this.#behind.clear();
  }

  /**
   * With several choices a count beside one of them is that one's, its own tokens so far, unless the counts grow as one
   * counter of all choices does: never back, and on with all that is said.
   */
  #noteBeside(index: number, usage: Usage, produced: boolean): void {
    const before = this.#beside?.output ?? 0;
    if (usage.output < before || (produced && usage.output === before)) this.#oneCounter = false;
    this.#beside = laterUsage(this.#beside, usage);
    this.#noteOfChoice(index, usage);
  }

  #noteOfChoice(index: number, usage: Usage): void {
    if (!this.#ofChoice.has(index) && this.#ofChoice.size >= CHOICES_MAX) return;
    this.#ofChoice.set(index, laterUsage(this.#ofChoice.get(index), usage));
    this.#wholeIsLast = false;
    this.#behind.delete(index);
  }

  /** The terminal marker has come. */
  end(): void {
    this.#ended = true;
  }

  /** What is known so far. */
  get usage(): Usage | undefined {
    const whole = this.#whole;
    const summed = (this.#oneCounter ? this.#beside : undefined) ?? joinedUsage(this.#ofChoice.values());
    // A whole count from before the choices' last counts is out of date once they add up to more.
    const isBehind = !this.#wholeIsLast && summed !== undefined && summed.output > (whole?.output ?? -1);
    const usage = isBehind ? summed : whole;
    return usage && withSearch(usage, this.#cited);
  }

  /** Whether `usage` is the last word: every choice has ended, and nothing was produced after the last count. */
  get final(): boolean {
    if (this.#behind.size > 0 || (this.#whole === undefined && this.#ofChoice.size === 0)) return false;
    if (this.#ended) return true;
    const ended = [...this.#seen].every((index) => this.#finished.has(index));
    return ended && this.#finished.size >= this.#asked;
  }
}

function indexOf({ index }: JsonObject): number {
  return typeof index === "number" ? index : 0;
}

/** A later count over an earlier one. One that has forgotten a side has not made it undone. */
function laterUsage(before: Usage | undefined, later: Usage): Usage {
  if (!before) return later;
  const toolCalls = mergedCalls(before.toolCalls, later.toolCalls);
  const counted = totalInput(before) > 0;
  if (later.unsplit !== undefined && counted) {
    return { ...before, output: Math.max(before.output, later.unsplit - totalInput(before)), toolCalls };
  }
  if (later.unsplit !== undefined) return { ...later, toolCalls };
  const { outputUncounted: _, ...sides } = totalInput(later) > 0 ? later : before;
  const { output, reasoning, outputUncounted } = later.output > 0 || before.outputUncounted ? later : before;
  return { ...sides, output, reasoning, toolCalls, ...(outputUncounted ? { outputUncounted } : {}) };
}
