/**
 * When the reads of an account have their turn: of each route one after another, in this process. Some go through a ledger or
 * through sums for a second and longer, a few milliseconds of the event loop at a time; hundreds of one account at once
 * would hold up the requests of everybody's clients for as long.
 */

import { KeyedQueue } from "../../values/collections/keyed-queue.ts";
import type { AccountTag } from "../../values/key.ts";
import type { ConsoleAnswer } from "../routes/contract.ts";
import { tooMany } from "../sign-in/attempts.ts";

/** Of one account at one route, the one that is answered included: as many as it may have sessions. */
export const READS_AT_ONCE_MAX = 32;
const AGAIN_MS = 1_000;

export class ReadTurns {
  readonly #queue = new KeyedQueue<ConsoleAnswer>();
  readonly #begun = new Map<string, number>();

  /** Does the work when it is its turn. @param route by its id. @throws AdminRefusal 429, when too many wait already */
  async of(tag: AccountTag, route: string, work: () => Promise<ConsoleAnswer>): Promise<ConsoleAnswer> {
    const name = `${tag} ${route}`;
    const before = this.#begun.get(name) ?? 0;
    if (before >= READS_AT_ONCE_MAX) {
      throw tooMany("too_many_requests", "The sessions of this account ask for too much of this at once.", AGAIN_MS);
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
