/**
 * Counts that come with each chunk, of a stream with several choices. Some servers count all choices together, others
 * each for itself; which of the two is told by how the numbers grow.
 */
import { arrayOf, type JsonObject, objectOf } from "../json-object.ts";

/** Choices that are told apart; the protocol has no more (protocols.md 1.1.1). */
const CHOICES_MAX = 128;

export class RunningOutput {
  readonly #byChoice = new Map<number, number>();
  #last = 0;
  #most = 0;
  /** Whether every chunk's count was above the one before it, as where one counter counts all. */
  #shared = true;

  /**
   * Notes the output that a chunk counts.
   * @param hasOutput whether the chunk itself says anything, so that a shared count must have grown with it.
   */
  saw(chunk: JsonObject, output: number, hasOutput: boolean): void {
    const choice = objectOf(arrayOf(chunk.choices)[0]);
    const index = typeof choice?.index === "number" ? choice.index : 0;
    if (output < this.#last || (hasOutput && output === this.#last)) this.#shared = false;
    this.#last = output;
    this.#most = Math.max(this.#most, output);
    if (!this.#byChoice.has(index) && this.#byChoice.size >= CHOICES_MAX) return;
    this.#byChoice.set(index, Math.max(this.#byChoice.get(index) ?? 0, output));
  }

  /** Output tokens of all choices so far. */
  get output(): number {
    if (this.#shared) return this.#most;
    let sum = 0;
    for (const output of this.#byChoice.values()) sum += output;
    return sum;
  }
}
