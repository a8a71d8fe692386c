/** What somebody may have meant by a name that is none. The one entry point of fastest-levenshtein. */
import { distance } from "fastest-levenshtein";

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
