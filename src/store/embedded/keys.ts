/** Keys of the embedded store. */
import type { AccountTag, KeyHash } from "../../values/key.ts";
import { accountId } from "../names.ts";
import type { Key, KeyView } from "../records.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database.ts";
import { findAccountRow, toKey } from "./rows.ts";

export function readKey(context: Context, tag: AccountTag, hash: KeyHash): KeyView | undefined {
  const nowMs = context.nowMs();
  const account = context.account(tag);
  const row = account && context.key(tag, hash);
  if (account === undefined || row === undefined) return undefined;
  return {
    key: toKey(tag, row),
    account: {
      id: accountId(tag),
      name: account.name,
      plan: account.plan,
      balance: account.balance as KeyView["account"]["balance"],
    },
    entitlements: context.entitlements(tag).filter((e) => e.untilMs > nowMs),
    storeTimeMs: nowMs,
  };
}

export function createKey(
  context: Context,
  tag: AccountTag,
  key: { id: string; hash: KeyHash; group: string },
): Key | undefined {
  const { db } = context;
  const nowMs = context.nowMs();
  if (findAccountRow(db, tag) === undefined) return undefined;
  const known = keyRow(context, tag, key.id) ?? db.get("SELECT * FROM keys WHERE tag = ? AND hash = ?", tag, key.hash);
  if (known !== undefined) return toKey(tag, known);
  db.commitFull(() =>
    db.run(
      "INSERT INTO keys (tag, hash, id, grp, status, created, revision) VALUES (?, ?, ?, ?, 'normal', ?, 1)",
      tag,
      key.hash,
      key.id,
      key.group,
      nowMs,
    ),
  );
  return { id: key.id, tag, group: key.group, status: "normal", createdAtMs: nowMs, revision: 1 };
}

export function listKeys(context: Context, tag: AccountTag): Key[] {
  return context.db.all("SELECT * FROM keys WHERE tag = ? ORDER BY created, id", tag).map((row) => toKey(tag, row));
}

/** A change has the store's time for a revision, also when the key has the group already: `redis/lua/key-change.lua`. */
export function setKeyGroup(
  context: Context,
  tag: AccountTag,
  keyId: string,
  group: string,
  replayed?: number,
): Key | undefined {
  return changeKey(context, tag, keyId, (key) => {
    if (key.status === "revoked" || (replayed !== undefined && replayed <= key.revision)) return undefined;
    return { group, status: "normal", revision: replayed ?? Math.max(key.revision + 1, context.nowMs()) };
  });
}

export function revokeKey(context: Context, tag: AccountTag, keyId: string, replayed?: number): Key | undefined {
  return changeKey(context, tag, keyId, ({ group, status, revision }) => {
    if (status === "revoked") return undefined;
    return { group, status: "revoked", revision: Math.max(revision + 1, replayed ?? context.nowMs()) };
  });
}

function changeKey(
  context: Context,
  tag: AccountTag,
  keyId: string,
  decide: (key: Key) => Pick<Key, "group" | "status" | "revision"> | undefined,
): Key | undefined {
  const row = keyRow(context, tag, keyId);
  if (row === undefined) return undefined;
  const key = toKey(tag, row);
  const change = decide(key);
  if (change === undefined) return key;
  const { db } = context;
  db.commitFull(() =>
    db.run(
      "UPDATE keys SET grp = ?, status = ?, revision = ? WHERE tag = ? AND id = ?",
      change.group,
      change.status,
      change.revision,
      tag,
      keyId,
    ),
  );
  return { ...key, ...change };
}

function keyRow(context: Context, tag: AccountTag, keyId: string): Row | undefined {
  return context.db.get("SELECT * FROM keys WHERE tag = ? AND id = ?", tag, keyId);
}
