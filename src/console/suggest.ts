/**
 * Names that the configuration knows: checked, and when unknown, refused with the nearest one.
 */
import { nearest } from "../values/words/nearest.ts";
import { AdminRefusal } from "./refusal.ts";

/** Names listed in a remedy at most. */
const LISTED_MAX = 20;
/** A name further away was not meant. */
const EDITS_MAX = 2;

/** "Did you mean ...? " with the nearest of the names, to be put before a remedy; empty where none is near. */
export function guessOf(name: string, names: Iterable<string>): string {
  const near = nearest(name, names, Math.min(EDITS_MAX, Math.max(1, name.length - 1)));
  return near === undefined ? "" : `Did you mean \`${near}\`? `;
}

/**
 * Checks a plan's or group's name against the configuration.
 * @param kind the word for it, `plan`, `group` or `card`, which is also the name of the member at fault.
 * @throws AdminRefusal 400 that names the member, the nearest known name and the known names.
 */
export function assertConfigured(kind: "plan" | "group" | "card", name: string, known: Iterable<string>): void {
  const names = [...known];
  if (names.includes(name)) return;
  const guess = guessOf(name, names);
  const listed = names.slice(0, LISTED_MAX).join(", ") + (names.length > LISTED_MAX ? ", ..." : "");
  const remedy =
    names.length === 0
      ? `The configuration names no ${kind} at all; add one under \`${kind}s:\`.`
      : `${guess}The configuration has these ${kind}s (exact, case-sensitive): ${listed}.`;
  throw new AdminRefusal(
    400,
    `unknown_${kind}`,
    `\`${kind}\` names a ${kind} that the configuration does not have.`,
    remedy,
  );
}
