/**
 * Which questions about what an upstream keeps are asked, and which answers are read, now. Such a question costs nothing,
 * and its answer may have 32 MiB: of each upstream, a few are read at once. The others wait unread, with no more than a
 * socket buffer each. Questions of clients need slots, so only some of them are asked at once. All have their turns in a fair
 * order of accounts and keys.
 */
import { FairQueue, type Owner } from "./fair-queue.ts";

/** The most answers that are read at once, per upstream. */
const READ_AT_ONCE = 4;

/** The turn of one question or answer. */
export interface ReadingTurn {
  /** Whether it has come; else `onTurn` tells. */
  readonly isNow: boolean;
  /** Ends the turn, or the wait for it; once. */
  end(): void;
}

interface Waiting {
  readonly owner: Owner;
  readonly onTurn: () => void;
  readonly onDissolved: () => void;
}

/** Of those whose owner does not matter. */
const NO_OWNER: Owner = { account: "", key: "" };

export class ReadingTurns {
  #atOnce: number;
  #running = 0;
  /** Bounded by the requests in flight. One account that asks for many large answers delays only itself. */
  readonly #waiting = new FairQueue<Waiting>(Number.POSITIVE_INFINITY);

  constructor(atOnce = READ_AT_ONCE) {
    this.#atOnce = atOnce;
  }

  /** Applies a new limit: turns that have come still count, and all that wait take theirs again. */
  change(atOnce: number): void {
    this.#atOnce = atOnce;
    this.dissolve();
  }

  /** Ends all waits before their turns, in the order of the turns. */
  dissolve(): void {
    // All are removed first, because some of them may wait here again at once.
    const all: Waiting[] = [];
    for (let one = this.#waiting.next(); one !== undefined; one = this.#waiting.next()) all.push(one);
    for (const one of all) one.onDissolved();
  }

  /**
   * @param onTurn called when the turn comes, if it is not now.
   * @param owner who has asked.
   * @param onDissolved called instead if the wait ends before the turn.
   */
  take(onTurn: () => void, owner = NO_OWNER, onDissolved = () => {}): ReadingTurn {
    if (this.#running < this.#atOnce) {
      this.#running += 1;
      return { isNow: true, end: () => this.#next() };
    }
    let hasCome = false;
    const waiting: Waiting = {
      owner,
      onTurn() {
        hasCome = true;
        onTurn();
      },
      onDissolved,
    };
    this.#waiting.enter(waiting);
    return {
      isNow: false,
      end: () => {
        if (hasCome) this.#next();
        else this.#waiting.leave(waiting);
      },
    };
  }

  /** A turn has ended: the next one takes its place. */
  #next(): void {
    const next = this.#running <= this.#atOnce ? this.#waiting.next() : undefined;
    if (next) next.onTurn();
    else this.#running -= 1;
  }
}
