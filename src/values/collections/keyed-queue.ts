/** Runs tasks of the same name one after another; tasks of different names run concurrently. */
export class KeyedQueue<T> {
  /** The last task of each name that has one running; bounded by the connections of the listener. */
  readonly #last = new Map<string, Promise<T>>();

  /** @param name undefined: does not wait. */
  async of(name: string | undefined, work: () => Promise<T>): Promise<T> {
    if (name === undefined) return work();
    const turn = (this.#last.get(name) ?? Promise.resolve()).then(work, work);
    this.#last.set(name, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(name) === turn) this.#last.delete(name);
    }
  }
}
