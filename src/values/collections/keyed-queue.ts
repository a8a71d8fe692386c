/** Work of one name, one piece after another; work of different names goes on side by side. */
export class KeyedQueue<T> {
  /** The last piece of each name that has one under way; bounded by the connections of the listener. */
  readonly #last = new Map<string, Promise<T>>();

  /** @param name undefined: waits for nobody. */
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
