/**
 * Streams whose client has left and which are read on for their bill. Their holds are still set aside: when the same
 * account asks again and is short, they end at once with what is known of them (ARCHITECTURE.md promise 5).
 */
import type { AccountTag } from "../values/key.ts";

export class LeftStreams {
  readonly #byAccount = new Map<AccountTag, Set<() => void>>();

  /**
   * @param end ends the stream; its charge is under way when this returns.
   * @returns takes the stream out again.
   */
  add(tag: AccountTag, end: () => void): () => void {
    const ends = this.#byAccount.get(tag) ?? new Set();
    this.#byAccount.set(tag, ends.add(end));
    return () => {
      ends.delete(end);
      if (ends.size === 0) this.#byAccount.delete(tag);
    };
  }

  /** Ends all of an account's. */
  end(tag: AccountTag): void {
    for (const end of [...(this.#byAccount.get(tag) ?? [])]) end();
  }
}
