/** Names of the configuration. An unknown name is refused with a suggestion of the nearest one. */
import { nearest } from "../values/words/nearest.ts";
import { AdminRefusal } from "./refusal.ts";

/** Names listed in a remedy at most. */
const LISTED_MAX = 20;
/** A name with a larger edit distance is not suggested. */
const EDITS_MAX = 2;

/** "Did you mean ...? " with the nearest name, as a prefix of a remedy; empty if no name is near. */
export function guessOf(name: string, names: Iterable<string>): string {
  const near = nearest(name, names, Math.min(EDITS_MAX, Math.max(1, name.length - 1)));
  return near === undefined ? "" : `Did you mean \`${near}\`? `;
}

/**
 * Checks that the configuration has a plan, group or card with this name.
 * @param kind `plan`, `group` or `card`; also the name of the member at fault
 * @throws AdminRefusal 400 that names the member, the nearest known name and the known names
 */
export function assertConfigured(kind: "plan" | "group" | "card", name: string, known: Iterable<string>): void {
  const names = [...known];
  if (names.includes(name)) return;
  const guess = guessOf(name, names);
  const listed = names.slice(0, LISTED_MAX).join(", ") + (names.length > LISTED_MAX ? ", ..." : "");
  const remedy =
    names.length === 0
      ? `The configuration has no ${kind}; add one under \`${kind}s:\`.`
      : `${guess}The configuration has these ${kind}s (exact, case-sensitive): ${listed}.`;
  throw new AdminRefusal(
    400,
    `unknown_${kind}`,
    `\`${kind}\` names a ${kind} that the configuration does not have.`,
    remedy,
  );
}
