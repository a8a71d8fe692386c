/** So many texts; one more, and all are forgotten: what is in use comes again at once. */
const TEXTS_MAX = 1_000;

/**
 * A function of a text that remembers what it gave for each, as the same few come with each request.
 * @param make never gives undefined; of a text on which it throws nothing is remembered.
 */
export function byText<V extends NonNullable<unknown>>(make: (text: string) => V): (text: string) => V {
  const known = new Map<string, V>();
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const made = make(text);
    if (known.size >= TEXTS_MAX) known.clear();
    known.set(text, made);
    return made;
  };
}
