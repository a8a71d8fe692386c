/** What somebody may have meant by a name that is none. The one entry point of fastest-levenshtein. */
import { distance } from "fastest-levenshtein";

/** From this length on two edits are a slip; in shorter names they make another word. */
const LONG_NAME_CHARS = 8;

/**
 * The known name of which another one is a slip of the pen: its case or separators differ, a letter is wrong, missing or too
 * much (two in a long name), or two letters have changed places.
 * @returns undefined for a known name, and for one that is like none.
 */
export function slipOf(name: string, known: ReadonlySet<string>): string | undefined {
  if (known.has(name)) return undefined;
  const letters = bare(name);
  return [...known].find((one) => {
    const meant = bare(one);
    const edits = distance(letters, meant);
    // Names of two or three letters are all near each other.
    if (edits === 0 || meant.length < 4) return edits === 0;
    if (meant.length >= LONG_NAME_CHARS) return edits <= 2;
    return edits === 1 || (edits === 2 && sorted(letters) === sorted(meant));
  });
}

const bare = (name: string) => name.toLowerCase().replace(/[^a-z0-9]/g, "");
const sorted = (letters: string) => [...letters].sort().join("");

/** @returns the name fewest edits away, case aside, and at most `most`; undefined when none is that near. */
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
