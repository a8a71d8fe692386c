/** Keys of the embedded store. */
import type { AccountTag, KeyHash } from "../../values/key.ts";
import { effectiveKeyStatus } from "../decision.ts";
import { changedMembers, keyRevisionsText, notChangedSince, readKeyRevisions } from "../key-revisions.ts";
import { accountId, KEY_VALUES_MAX } from "../names.ts";
import type { Key, KeyChange, KeyRotation, KeyUse, KeyView, ListedKey, NewKeyRecord } from "../records.ts";
import { budgetsOf, budgetsOfAccount } from "./budgets.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database/database.ts";
import { noteNotice } from "./notices.ts";
import { findAccountRow, toKey } from "./rows.ts";

export function readKey(context: Context, tag: AccountTag, hash: KeyHash): KeyView | undefined {
  const nowMs = context.nowMs();
  const account = context.account(tag);
  const row = account && context.key(tag, hash);
  if (account === undefined || row === undefined) return undefined;
  const key = toKey(tag, row);
  return {
    key: { ...key, status: effectiveKeyStatus(key.status, account.status) },
    account: {
      id: accountId(tag),
      name: account.name,
      plan: account.plan,
      balance: account.balance as KeyView["account"]["balance"],
      limits: account.limits,
    },
    budgets: new Map([...budgetsOf(context, tag, text(row.id)), ...budgetsOfAccount(context, tag)]),
    entitlements: context.entitlements(tag, nowMs).filter((e) => e.untilMs > nowMs),
    storeTimeMs: nowMs,
  };
}

export function createKey(
  context: Context,
  tag: AccountTag,
  { id, hash, group, name = "", expiresAtMs }: NewKeyRecord,
): Key | undefined {
  const { db } = context;
  const nowMs = context.nowMs();
  const account = findAccountRow(db, tag);
  if (account === undefined) return undefined;
  const known = keyRow(context, tag, id) ?? db.get("SELECT * FROM keys WHERE tag = ? AND hash = ?", tag, hash);
  if (known !== undefined) return toKey(tag, known);
  if (account.status === "closed") return undefined;
  db.commitFull(() =>
    db.run(
      "INSERT INTO keys (tag, hash, id, grp, name, status, expires, created, revision) VALUES (?, ?, ?, ?, ?, 'normal', ?, ?, 1)",
      tag,
      hash,
      id,
      group,
      name,
      expiresAtMs ?? null,
      nowMs,
    ),
  );
  const made = { id, tag, group, name, status: "normal", expiresAtMs, previousUntilMs: undefined } as const;
  return { ...made, createdAtMs: nowMs, revision: 1, limits: "", caps: "", rotation: 0 };
}

export function listKeys(context: Context, tag: AccountTag): ListedKey[] {
  const { db } = context;
  return db.all("SELECT * FROM keys WHERE tag = ? ORDER BY created, id", tag).map((row) => {
    const key = { ...toKey(tag, row), budgets: budgetsOf(context, tag, text(row.id)) };
    const used = db.get("SELECT * FROM key_uses WHERE tag = ? AND id = ?", tag, key.id);
    if (!used) return key;
    const [from, by] = [used.place as string, used.program as string];
    return { ...key, lastUse: { keyId: key.id, atMs: Number(used.at), from, by } };
  });
}

/** `redis/lua/key-uses.lua` does the same. */
export function noteKeyUses(context: Context, tag: AccountTag, uses: readonly KeyUse[]): void {
  const { db } = context;
  db.commitNormal(() => {
    for (const { keyId, atMs, from, by } of uses) {
      if (keyRow(context, tag, keyId) === undefined) continue;
      db.run(
        `INSERT INTO key_uses (tag, id, at, place, program) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (tag, id) DO UPDATE SET at = excluded.at, place = excluded.place, program = excluded.program
        WHERE excluded.at > key_uses.at`,
        tag,
        keyId,
        atMs,
        from,
        by,
      );
    }
  });
}

/** A change takes the store's time as its revision, even when it changes nothing: `redis/lua/key-change.lua`. */
export function changeKey(
  context: Context,
  tag: AccountTag,
  keyId: string,
  wanted: KeyChange,
  replayed?: number,
): Key | undefined {
  return rewriteKey(context, tag, keyId, (key, revisions) => {
    if (key.status === "revoked") return undefined;
    const known = readKeyRevisions(revisions, key.revision);
    const asOf = replayed ?? Math.max(key.revision + 1, context.nowMs());
    const counting = replayed === undefined ? wanted : notChangedSince(known, wanted, replayed);
    if (replayed !== undefined && changedMembers(counting).length === 0) return undefined;
    const { expiresAtMs, ...change } = counting;
    const end = expiresAtMs === "never" ? undefined : (expiresAtMs ?? key.expiresAtMs);
    const changed = { ...key, ...change, expiresAtMs: end, revision: Math.max(key.revision, asOf) };
    return { changed, asOf, revisions: keyRevisionsText(known, counting, asOf) };
  });
}

export function revokeKey(context: Context, tag: AccountTag, keyId: string, replayed?: number): Key | undefined {
  return rewriteKey(context, tag, keyId, (key, revisions) => {
    if (key.status === "revoked") return undefined;
    const asOf = Math.max(key.revision + 1, replayed ?? context.nowMs());
    return { changed: { ...key, status: "revoked", revision: asOf }, asOf, revisions };
  });
}

/** `redis/lua/key-rotate.lua` does the same. */
export function rotateKey(
  context: Context,
  tag: AccountTag,
  keyId: string,
  to: KeyRotation,
  replayed?: number,
): Key | "too_many" | undefined {
  const { db } = context;
  const row = keyRow(context, tag, keyId);
  if (row === undefined) return undefined;
  const key = toKey(tag, row);
  const { hash } = to;
  if (key.status === "revoked" || context.key(tag, hash) !== undefined) return key;
  if (replayed !== undefined && replayed <= key.rotation) return key;
  const nowMs = context.nowMs();
  const untilMs = "untilMs" in to ? to.untilMs : nowMs + to.overlapMs;
  const former = "SELECT COUNT(*) AS n FROM former_keys WHERE tag = ? AND id = ? AND until > ?";
  const working = 1 + Number(db.get(former, tag, keyId, nowMs)?.n) + (untilMs > nowMs ? 1 : 0);
  if (working > KEY_VALUES_MAX) return "too_many";
  const rotation = Math.max(key.rotation + 1, replayed ?? nowMs);
  db.commitFull(() => {
    db.run("INSERT INTO former_keys (tag, hash, id, until) VALUES (?, ?, ?, ?)", tag, row.hash ?? null, keyId, untilMs);
    // Expired values are remembered for a while, so that a program that still uses one gets the right error. Then the
    // first to expire is forgotten.
    db.run(
      `DELETE FROM former_keys WHERE tag = ?1 AND hash IN (
        SELECT hash FROM former_keys WHERE tag = ?1 AND id = ?2 
        ORDER BY hash = ?3 DESC, until DESC, hash DESC LIMIT -1 OFFSET ?4)`,
      tag,
      keyId,
      row.hash ?? null,
      KEY_VALUES_MAX,
    );
    db.run(
      "UPDATE keys SET hash = ?, previous_until = ?, rotation = ? WHERE tag = ? AND id = ?",
      hash,
      untilMs,
      rotation,
      tag,
      keyId,
    );
  });
  return { ...key, previousUntilMs: untilMs, rotation };
}

interface Rewritten {
  readonly changed: Key;
  /** The revision of the changed members. */
  readonly asOf: number;
  readonly revisions: string;
}

function rewriteKey(
  context: Context,
  tag: AccountTag,
  keyId: string,
  decide: (key: Key, revisions: string) => Rewritten | undefined,
): Key | undefined {
  const row = keyRow(context, tag, keyId);
  if (row === undefined) return undefined;
  const key = toKey(tag, row);
  const rewritten = decide(key, text(row.revisions));
  if (rewritten === undefined) return key;
  const { changed, asOf, revisions } = rewritten;
  const { db } = context;
  db.commitFull(() => {
    db.run(
      "UPDATE keys SET grp = ?, name = ?, status = ?, expires = ?, limits = ?, caps = ?, revision = ?, revisions = ? WHERE tag = ? AND id = ?",
      changed.group,
      changed.name,
      changed.status,
      changed.expiresAtMs ?? null,
      changed.limits,
      changed.caps,
      changed.revision,
      revisions,
      tag,
      keyId,
    );
    if (changed.status !== "suspended" || key.status === "suspended") return;
    const { name, group } = changed;
    const data = { key: keyId, name, group };
    noteNotice(context, tag, { kind: "key_suspended", ref: `${keyId}:${asOf}`, data }, context.nowMs());
  });
  return changed;
}

const text = (value: Row[string] | undefined): string => value as string;

function keyRow(context: Context, tag: AccountTag, keyId: string): Row | undefined {
  return context.db.get("SELECT * FROM keys WHERE tag = ? AND id = ?", tag, keyId);
}
