/**
 * Each member that a change of a key can set has a revision of its own. A replayed change takes effect for each member
 * that was not changed since, whatever became of the others. `redis/lua/key-change.lua` does the same.
 */
import type { KeyChange } from "./records.ts";

const KEY_MEMBERS = ["group", "name", "status", "expiresAtMs", "limits", "caps"] as const;
type KeyRevisions = Readonly<Record<(typeof KEY_MEMBERS)[number], number>>;

/**
 * @param text as a store keeps it: the revisions in the order of the members, separated by spaces.
 * @param latest the key's revision. If the text is empty or older than this, a version that knows only one revision for
 * the whole key made the last change.
 */
export function readKeyRevisions(text: string, latest: number): KeyRevisions {
  const read = text.split(" ").map(Number);
  const isKept = read.length === KEY_MEMBERS.length && Math.max(...read) === latest;
  return Object.fromEntries(KEY_MEMBERS.map((member, i) => [member, isKept ? read[i] : latest])) as KeyRevisions;
}

/** The text that `readKeyRevisions` reads, with a new revision for the changed members. */
export function keyRevisionsText(known: KeyRevisions, changed: KeyChange, revision: number): string {
  return KEY_MEMBERS.map((member) => (changed[member] === undefined ? known[member] : revision)).join(" ");
}

/** The part of a replayed change that takes effect: members that were not changed since. */
export function notChangedSince(known: KeyRevisions, change: KeyChange, revision: number): KeyChange {
  return Object.fromEntries(
    KEY_MEMBERS.flatMap((member) =>
      change[member] !== undefined && revision > known[member] ? [[member, change[member]]] : [],
    ),
  );
}

/** The names of the members that a change sets. */
export function changedMembers(change: KeyChange): string[] {
  return KEY_MEMBERS.filter((member) => change[member] !== undefined);
}
