/** The admitted requests of this process, by account; what shedding goes by. */
import type { AccountTag, KeyHash } from "../values/key.ts";
import type { Census } from "./shed.ts";

interface KeyLoad {
  readonly tag: AccountTag;
  count: number;
}

/**
 * Counts what is in flight. An account is known by a key only while that key has requests running, that is, after the
 * store has vouched for it: a forged key with another account's tag learns nothing and blames nobody.
 */
export class InFlight {
  readonly #byAccount = new Map<AccountTag, number>();
  readonly #byKey = new Map<KeyHash, KeyLoad>();
  /** How many accounts have each number of requests, so that the most is at hand without a walk. */
  readonly #accountsByCount = new Map<number, number>();
  #total = 0;
  #most = 0;

  get census(): Census {
    return { total: this.#total, accounts: this.#byAccount.size, most: this.#most };
  }

  of(tag: AccountTag): number {
    return this.#byAccount.get(tag) ?? 0;
  }

  /** Requests of the account that a key belongs to; 0 while none of the key runs. */
  ofKey(hash: KeyHash): number {
    const load = this.#byKey.get(hash);
    return load ? this.of(load.tag) : 0;
  }

  /** Takes a request in. @returns what takes it out; once. */
  enter(tag: AccountTag, hash: KeyHash): () => void {
    const load = this.#byKey.get(hash) ?? { tag, count: 0 };
    load.count += 1;
    this.#byKey.set(hash, load);
    this.#move(tag, 1);
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      load.count -= 1;
      if (load.count === 0) this.#byKey.delete(hash);
      this.#move(tag, -1);
    };
  }

  #move(tag: AccountTag, by: 1 | -1): void {
    const before = this.of(tag);
    const now = before + by;
    this.#total += by;
    if (now === 0) this.#byAccount.delete(tag);
    else this.#byAccount.set(tag, now);
    this.#rank(before, -1);
    this.#rank(now, 1);
    // A count changes by one, so the most does, too.
    if (now > this.#most) this.#most = now;
    else if (before === this.#most && !this.#accountsByCount.has(before)) this.#most = now;
  }

  #rank(count: number, by: 1 | -1): void {
    if (count === 0) return;
    const accounts = (this.#accountsByCount.get(count) ?? 0) + by;
    if (accounts === 0) this.#accountsByCount.delete(count);
    else this.#accountsByCount.set(count, accounts);
  }
}
