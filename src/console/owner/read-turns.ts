/**
 * Limits the reads of an account: at each route, this process answers one after another. Some reads go through a ledger
 * or daily sums for a second or longer, a few milliseconds of the event loop at a time; hundreds of one account at once
 * would delay all clients for that long.
 */

import { KeyedQueue } from "../../values/collections/keyed-queue.ts";
import type { AccountTag } from "../../values/key.ts";
import type { ConsoleAnswer } from "../routes/contract.ts";
import { tooMany } from "../sign-in/attempts.ts";

/** Reads of one account at one route, including the running one. The same number as its maximum of sessions. */
export const READS_AT_ONCE_MAX = 32;
const AGAIN_MS = 1_000;

export class ReadTurns {
  readonly #queue = new KeyedQueue<ConsoleAnswer>();
  readonly #begun = new Map<string, number>();

  /** Runs the work in its turn. @param route the route's id @throws AdminRefusal 429 if too many wait already */
  async of(tag: AccountTag, route: string, work: () => Promise<ConsoleAnswer>): Promise<ConsoleAnswer> {
    const name = `${tag} ${route}`;
    const before = this.#begun.get(name) ?? 0;
    if (before >= READS_AT_ONCE_MAX) {
      throw tooMany(
        "too_many_requests",
        "Too many requests of this account's sessions wait for the same data.",
        AGAIN_MS,
      );
    }
    this.#begun.set(name, before + 1);
    try {
      return await this.#queue.of(name, work);
    } finally {
      this.#ended(name);
    }
  }

  #ended(name: string): void {
    const left = (this.#begun.get(name) ?? 1) - 1;
    if (left === 0) this.#begun.delete(name);
    else this.#begun.set(name, left);
  }
}
