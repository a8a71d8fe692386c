/** What every operation of the embedded store works on. */
import type { AccountTag } from "../../values/key.ts";
import type { Database } from "./database.ts";
import { emptyLive, type Live } from "./live.ts";

export class Context {
  readonly db: Database;
  readonly #now: () => number;
  readonly #live = new Map<AccountTag, Live>();

  constructor(db: Database, now: () => number) {
    this.db = db;
    this.#now = now;
  }

  /** The store's clock, milliseconds since the epoch; read once per operation. */
  nowMs(): number {
    return Math.trunc(this.#now());
  }

  /** What an account has in flight; call it only for accounts that exist, so that strangers cannot fill the map. */
  live(tag: AccountTag): Live {
    const known = this.#live.get(tag);
    if (known) return known;
    const live = emptyLive();
    this.#live.set(tag, live);
    return live;
  }
}
