/** Suggests the known name that a misspelled name probably means. The only user of fastest-levenshtein. */
import { distance } from "fastest-levenshtein";

/** From this length on, two edits count as a typo; in shorter names they make another word. */
const LONG_NAME_CHARS = 8;

/**
 * The known name of which `name` is a typo: case or separators differ, a letter is wrong, missing or superfluous (two
 * in a long name), or two letters are swapped.
 * @returns undefined for a known name, and for one that resembles no known name.
 */
export function slipOf(name: string, known: ReadonlySet<string>): string | undefined {
  if (known.has(name)) return undefined;
  const letters = bare(name);
  return [...known].find((one) => {
    const meant = bare(one);
    const edits = distance(letters, meant);
    // Names of two or three letters all resemble each other.
    if (edits === 0 || meant.length < 4) return edits === 0;
    if (meant.length >= LONG_NAME_CHARS) return edits <= 2;
    return edits === 1 || (edits === 2 && sorted(letters) === sorted(meant));
  });
}

const bare = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "");
const sorted = (letters: string) => [...letters].sort().join("");

/** @returns the name with the fewest edits to `asked`, ignoring case; undefined if none is within `most` edits. */
export function nearest(asked: string, names: Iterable<string>, most: number): string | undefined {
  let best: string | undefined;
  let bestEdits = most + 1;
  for (const name of names) {
    const edits = distance(asked.toLowerCase(), name.toLowerCase());
    if (edits >= bestEdits) continue;
    best = name;
    bestEdits = edits;
  }
  return best;
}
