/**
 * What a change sets of a key, each with a revision of its own: a change that is done again counts where that very thing was
 * not changed since, whatever became of the others. `redis/lua/key-change.lua` does the same.
 */
import type { KeyChange } from "./records.ts";

const KEY_MEMBERS = ["group", "name", "status", "expiresAtMs", "limits", "caps"] as const;
type KeyRevisions = Readonly<Record<(typeof KEY_MEMBERS)[number], number>>;

/**
 * @param text as a store keeps them: in the order of the members, with blanks.
 * @param latest the key's revision. Where the text has none, or is not up to it, whoever changed the key knew of one revision
 * for all of it.
 */
export function readKeyRevisions(text: string, latest: number): KeyRevisions {
  const read = text.split(" ").map(Number);
  const isKept = read.length === KEY_MEMBERS.length && Math.max(...read) === latest;
  return Object.fromEntries(KEY_MEMBERS.map((member, i) => [member, isKept ? read[i] : latest])) as KeyRevisions;
}

/** The text of what `readKeyRevisions` reads, with another revision for what is changed. */
export function keyRevisionsText(known: KeyRevisions, changed: KeyChange, revision: number): string {
  return KEY_MEMBERS.map((member) => (changed[member] === undefined ? known[member] : revision)).join(" ");
}

/** What counts of a change that is done again: members that were not changed since. */
export function notChangedSince(known: KeyRevisions, change: KeyChange, revision: number): KeyChange {
  return Object.fromEntries(
    KEY_MEMBERS.flatMap((member) =>
      change[member] !== undefined && revision > known[member] ? [[member, change[member]]] : [],
    ),
  );
}

/** The names of what a change sets. */
export function changedMembers(change: KeyChange): string[] {
  return KEY_MEMBERS.filter((member) => change[member] !== undefined);
}
