/**
 * Names that the configuration knows: checked, and when unknown, refused with the nearest one.
 */
import { Refusal } from "./refusal.ts";

/** Names listed in a remedy at most. */
const LISTED_MAX = 20;

/**
 * Checks a plan's or group's name against the configuration.
 * @param kind the word for it, `plan`, `group` or `card`, which is also the name of the member at fault.
 * @throws Refusal 400 that names the member, the nearest known name and the known names.
 */
export function assertConfigured(kind: "plan" | "group" | "card", name: string, known: Iterable<string>): void {
  const names = [...known];
  if (names.includes(name)) return;
  const near = nearest(name, names);
  const guess = near === undefined ? "" : `Did you mean \`${near}\`? `;
  const listed = names.slice(0, LISTED_MAX).join(", ") + (names.length > LISTED_MAX ? ", ..." : "");
  const remedy =
    names.length === 0
      ? `The configuration names no ${kind} at all; add one under \`${kind}s:\`.`
      : `${guess}The configuration has these ${kind}s (exact, case-sensitive): ${listed}.`;
  throw new Refusal(
    400,
    `unknown_${kind}`,
    `\`${kind}\` names a ${kind} that the configuration does not have.`,
    remedy,
  );
}

/** The name within two edits of the one asked for, whatever the case; undefined when none is that near. */
export function nearest(asked: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestEdits = Math.min(3, Math.max(2, asked.length));
  for (const name of names) {
    const edits = editDistance(asked.toLowerCase(), name.toLowerCase());
    if (edits < bestEdits) {
      best = name;
      bestEdits = edits;
    }
  }
  return best;
}

/** Levenshtein's distance, one row at a time. Both texts are short: names are bounded by the schemas. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let i = 1; i <= left.length; i++) {
    const next = [i];
    for (let j = 1; j <= right.length; j++) {
      const swap = (row[j - 1] as number) + (left[i - 1] === right[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[right.length] as number;
}
