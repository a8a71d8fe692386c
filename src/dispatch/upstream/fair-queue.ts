/**
 * The queue of one upstream: round robin over accounts, within an account over its keys, within a key first come, first
 * served. So a caller with many requests delays only itself.
 */

/** Who queues: requests of one key wait for each other. */
export interface Owner {
  readonly account: string;
  readonly key: string;
}

export class FairQueue<T extends { readonly owner: Owner }> {
  readonly #max: number;
  /** Accounts, and the keys of each, in the order of their turns. */
  readonly #turns = new Map<string, Map<string, T[]>>();
  #length = 0;

  /** @param max how many may wait here; 0: none. */
  constructor(max: number) {
    this.#max = max;
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Adds a request at the end of its owner's own requests. If the queue is full, the new request takes the last
   * position of an owner with clearly more requests, so no owner can keep others out by filling the queue.
   * @returns the request that had to leave: the new one, another one, or none.
   */
  enter(one: T): T | undefined {
    if (this.#length < this.#max) {
      this.#append(one);
      return undefined;
    }
    const put = this.#lastOfLongest(one.owner);
    if (put === undefined) return one;
    this.leave(put);
    this.#append(one);
    return put;
  }

  /** Removes and returns the request whose turn it is. */
  next(): T | undefined {
    const [account] = this.#turns.keys();
    if (account === undefined) return undefined;
    const keys = this.#turns.get(account) as Map<string, T[]>;
    const [key] = keys.keys() as Iterator<string> & Iterable<string>;
    const waiting = keys.get(key as string) as T[];
    const one = waiting.shift() as T;
    this.#length -= 1;
    // A key or an account that had its turn goes to the end of the round.
    keys.delete(key as string);
    if (waiting.length > 0) keys.set(key as string, waiting);
    this.#turns.delete(account);
    if (keys.size > 0) this.#turns.set(account, keys);
    return one;
  }

  /** Removes a request before its turn; no effect if it is not here. */
  leave(one: T): void {
    const keys = this.#turns.get(one.owner.account);
    const waiting = keys?.get(one.owner.key);
    const at = waiting?.indexOf(one) ?? -1;
    if (!keys || !waiting || at < 0) return;
    waiting.splice(at, 1);
    this.#length -= 1;
    if (waiting.length === 0) keys.delete(one.owner.key);
    if (keys.size === 0) this.#turns.delete(one.owner.account);
  }

  #append(one: T): void {
    const keys = this.#turns.get(one.owner.account) ?? new Map<string, T[]>();
    this.#turns.set(one.owner.account, keys);
    const waiting = keys.get(one.owner.key);
    if (waiting) waiting.push(one);
    else keys.set(one.owner.key, [one]);
    this.#length += 1;
  }

  /**
   * The newest request of the longest account, and in it of the longest key; it must have at least two more requests
   * here than the new request's owner.
   */
  #lastOfLongest({ account, key }: Owner): T | undefined {
    let longest = account;
    for (const name of this.#turns.keys()) {
      if (this.#countOf(name) > this.#countOf(longest)) longest = name;
    }
    if (longest !== account && this.#countOf(longest) < this.#countOf(account) + 2) longest = account;
    const keys = this.#turns.get(longest);
    if (!keys) return undefined;
    let most: T[] = [];
    for (const waiting of keys.values()) if (waiting.length > most.length) most = waiting;
    const own = longest === account ? (keys.get(key)?.length ?? 0) : 0;
    return longest === account && most.length < own + 2 ? undefined : most.at(-1);
  }

  #countOf(account: string): number {
    let count = 0;
    for (const waiting of this.#turns.get(account)?.values() ?? []) count += waiting.length;
    return count;
  }
}
