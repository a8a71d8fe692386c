/**
 * Streams whose client has disconnected and which the gateway keeps reading for their bill. Their holds are still in
 * place. When the same account sends a request and is short of funds, they end at once with what is known so far
 * (ARCHITECTURE.md promise 5).
 */
import type { AccountTag } from "../values/key.ts";

export class DisconnectedStreams {
  readonly #byAccount = new Map<AccountTag, Set<() => void>>();

  /**
   * @param end ends the stream; its charge is under way when this returns.
   * @returns a function that removes the stream.
   */
  add(tag: AccountTag, end: () => void): () => void {
    const ends = this.#byAccount.get(tag) ?? new Set();
    this.#byAccount.set(tag, ends.add(end));
    return () => {
      ends.delete(end);
      if (ends.size === 0) this.#byAccount.delete(tag);
    };
  }

  /** Ends all streams of an account. */
  end(tag: AccountTag): void {
    for (const end of [...(this.#byAccount.get(tag) ?? [])]) end();
  }
}
