/** What every operation of the embedded store works on. */
import type { AccountTag } from "../../values/key.ts";
import type { Database } from "./database.ts";
import { emptyLive, type Live } from "./live.ts";

export class Context {
  readonly db: Database;
  readonly #now: () => number;
  readonly #live = new Map<AccountTag, Live>();
  #latestMs = 0;

  constructor(db: Database, now: () => number) {
    this.db = db;
    this.#now = now;
  }

  /** The store's clock, milliseconds since the epoch; read once per operation. */
  nowMs(): number {
    const nowMs = Math.trunc(this.#now());
    if (nowMs > this.#latestMs) this.#latestMs = nowMs;
    return nowMs;
  }

  /** The latest instant seen: a settled mark that has expired stays expired when the clock is set back. */
  get latestMs(): number {
    return this.#latestMs;
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
