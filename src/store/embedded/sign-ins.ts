/** Console sign-ins on the embedded store; `redis/lua/sign-ins.lua` does the same. */
import { givesWay, mostOf, type NewSignIn, type SignInKind, type SignInOwner, type SignInRecord } from "../sign-ins.ts";
import type { Context } from "./context.ts";
import type { Database, Row } from "./database/database.ts";
import { instantOrNone } from "./rows.ts";

type SignInRow = SignInRecord & { readonly seq: number };

export function keepSignIn(
  context: Context,
  owner: SignInOwner,
  { kind, id, data, lastsMs, only, was, by }: NewSignIn,
): "kept" | "too_many" | "unmet" {
  const { db } = context;
  const nowMs = context.nowMs();
  const all = recordsOf(db, owner);
  const live = all.filter((record) => !isOver(record, nowMs));
  const others = live.filter((record) => record.kind !== kind || record.id !== id);
  const known = live.find((record) => record.kind === kind && record.id === id);
  if (only === "new" && known?.data === data) return "kept";
  if (by !== undefined && !live.some((record) => record.kind === by.kind && record.id === by.id)) return "unmet";
  if (only !== undefined && (only === "known") === (known === undefined)) return "unmet";
  if (was !== undefined && known?.data !== was) return "unmet";
  const alike = others.filter((record) => record.kind === kind);
  const beyond = Math.max(0, alike.length - mostOf(kind) + 1);
  if (!givesWay(kind) && beyond > 0) return "too_many";
  const seq = Math.max(0, ...others.map((record) => record.seq)) + 1;
  db.commitFull(() => {
    remove(db, owner, [...all.filter((record) => isOver(record, nowMs)), ...alike.slice(0, beyond)]);
    db.run(
      "INSERT OR REPLACE INTO sign_ins (owner, kind, id, seq, created, expires, data) VALUES (?, ?, ?, ?, ?, ?, ?)",
      owner,
      kind,
      id,
      seq,
      nowMs,
      lastsMs === undefined ? null : nowMs + lastsMs,
      data,
    );
  });
  return "kept";
}

export function takeSignIn(
  context: Context,
  owner: SignInOwner,
  kind: SignInKind,
  id: string,
): SignInRecord | undefined {
  const [taken] = drop(context, owner, (record) => record.kind === kind && record.id === id);
  return taken && shown(taken);
}

export function findSignIn(
  context: Context,
  owner: SignInOwner,
  kind: SignInKind,
  id: string,
): SignInRecord | undefined {
  const row = context.db.get("SELECT * FROM sign_ins WHERE owner = ? AND kind = ? AND id = ?", owner, kind, id);
  const found = row && toSignInRow(row);
  return found && !isOver(found, context.nowMs()) ? shown(found) : undefined;
}

export function listSignIns(context: Context, owner: SignInOwner): SignInRecord[] {
  const nowMs = context.nowMs();
  return recordsOf(context.db, owner)
    .filter((record) => !isOver(record, nowMs))
    .map(shown);
}

export function dropSignIn(
  context: Context,
  owner: SignInOwner,
  kind: SignInKind,
  id: string,
  keptByMs = Number.POSITIVE_INFINITY,
): boolean {
  const isMeant = (record: SignInRow) => record.kind === kind && record.id === id && record.createdAtMs <= keptByMs;
  return drop(context, owner, isMeant).length > 0;
}

export function dropSignIns(context: Context, owner: SignInOwner, ...kinds: readonly SignInKind[]): number {
  return drop(context, owner, ({ kind }) => kinds.includes(kind)).length;
}

/** Removes the matching records, and those that are over. @returns matching records that were not over. */
function drop(context: Context, owner: SignInOwner, isMeant: (record: SignInRow) => boolean): SignInRow[] {
  const { db } = context;
  const nowMs = context.nowMs();
  const gone = recordsOf(db, owner).filter((record) => isOver(record, nowMs) || isMeant(record));
  if (gone.length > 0) db.commitFull(() => remove(db, owner, gone));
  return gone.filter((record) => !isOver(record, nowMs));
}

function remove(db: Database, owner: SignInOwner, records: readonly SignInRow[]): void {
  for (const { kind, id } of records)
    db.run("DELETE FROM sign_ins WHERE owner = ? AND kind = ? AND id = ?", owner, kind, id);
}

const isOver = ({ expiresAtMs }: SignInRow, nowMs: number): boolean =>
  expiresAtMs !== undefined && expiresAtMs <= nowMs;

/** In the order in which they were stored. */
const recordsOf = (db: Database, owner: SignInOwner): SignInRow[] =>
  db.all("SELECT * FROM sign_ins WHERE owner = ? ORDER BY seq", owner).map(toSignInRow);

function toSignInRow(row: Row): SignInRow {
  return {
    kind: row.kind as SignInKind,
    id: row.id as string,
    data: row.data as string,
    seq: Number(row.seq),
    createdAtMs: Number(row.created),
    expiresAtMs: instantOrNone(row.expires),
  };
}

function shown({ seq: _, ...record }: SignInRow): SignInRecord {
  return record;
}
