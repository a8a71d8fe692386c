/**
 * Which answers about what an upstream keeps are read now. Such a question costs nothing, and its answer may have
 * 32 MiB: of each upstream, a few are read at once. The others wait unread, with no more than a socket buffer each.
 */

/** The most that are read at once, per upstream. */
const READ_AT_ONCE = 4;

/** The turn of one answer. */
export interface ReadingTurn {
  /** Whether it has come; else `onTurn` tells. */
  readonly isNow: boolean;
  /** Ends the turn, or the wait for it; once. */
  end(): void;
}

export class ReadingTurns {
  #reading = 0;
  /** In the order of their turns. */
  readonly #waiting = new Set<() => void>();

  /** @param onTurn called when the turn comes, if it is not now. */
  take(onTurn: () => void): ReadingTurn {
    const isNow = this.#reading < READ_AT_ONCE;
    if (isNow) this.#reading += 1;
    else this.#waiting.add(onTurn);
    return {
      isNow,
      end: () => {
        if (!this.#waiting.delete(onTurn)) this.#next();
      },
    };
  }

  /** A turn has ended: the next one takes its place. */
  #next(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#reading -= 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
