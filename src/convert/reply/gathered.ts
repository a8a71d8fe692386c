/** Text that comes in many pieces and is wanted whole in the end. */

/** Pieces that wait to be joined; a million one-letter deltas would otherwise be a rope with a million knots. */
const PIECES_MAX = 1_024;

/** Joins pieces in linear time and with memory near that of the text itself (docs/failure-model.md row 68). */
export class Gathered {
  #joined = "";
  #pieces: string[] = [];

  /** Whether anything but empty pieces has come. */
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

  /** Everything so far. */
  text(): string {
    this.#join();
    return this.#joined;
  }
}
