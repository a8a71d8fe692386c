/** Maximum of texts; when it is exceeded, all are forgotten. Texts in use are soon added again. */
const TEXTS_MAX = 1_000;

/**
 * Memoizes a function of a text, because the same few texts occur in each request.
 * @param make never returns undefined; if it throws, nothing is remembered.
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
