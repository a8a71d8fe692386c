/**
 * Idempotency keys: which request of an account took one, and how that ended. They are on disk, because a key must
 * outlive the process whose request holds it. `redis/lua/idempotency.lua` does the same, step by step.
 */

import type { IdempotentRequest, KeyState } from "../../values/idempotency.ts";
import type { AccountTag } from "../../values/key.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { AdmitRefusalCause } from "../admission.ts";
import type { AccountState } from "../records.ts";
import type { SettleAsk } from "../settlement.ts";
import type { Database } from "./database/database.ts";

/** The most expired keys that one operation deletes. */
const SWEEP_MAX = 16;

interface Mark {
  readonly requestId: RequestId;
  readonly fingerprint: string;
  readonly state: KeyState;
}

/**
 * Why a request may not take a key, and which request has it; undefined when it may.
 * @param isGone whether a request that has neither ended nor expired will never end, because its process has died.
 */
export function keyTaken(
  db: Database,
  tag: AccountTag,
  { key, fingerprint }: IdempotentRequest,
  nowMs: number,
  isGone: (requestId: RequestId) => boolean,
): { readonly cause: AdmitRefusalCause; readonly first: RequestId } | undefined {
  const mark = findMark(db, tag, key, nowMs);
  if (mark === undefined || (mark.state === "running" && isGone(mark.requestId))) return undefined;
  return { cause: causeOf(mark, fingerprint), first: mark.requestId };
}

function causeOf(mark: Mark, fingerprint: string): AdmitRefusalCause {
  if (mark.fingerprint !== fingerprint) return "idempotency_key";
  if (mark.state === "running") return "idempotency_in_progress";
  return mark.state === "streamed" ? "idempotency_streamed" : "idempotency_finished";
}

/** Gives a key to a request for as long as its hold lives. */
export function takeKey(
  db: Database,
  ask: { readonly tag: AccountTag; readonly requestId: string; readonly idempotency: IdempotentRequest },
  untilMs: number,
  nowMs: number,
): void {
  db.commitNormal(() => {
    putMark(db, ask, "running", untilMs);
    sweep(db, nowMs);
  });
}

/**
 * What a settlement leaves of its request's key, within the running transaction: the memory of a charge, or nothing if
 * nothing was charged. If another request has taken the key meanwhile, the key stays with that one.
 */
export function endKey(db: Database, ask: SettleAsk, nowMs: number): void {
  const { tag, requestId, voided, idempotency } = ask;
  if (idempotency === undefined) return;
  const { key, streamed, untilMs } = idempotency;
  const mark = findMark(db, tag, key, nowMs);
  if (mark !== undefined && mark.requestId !== requestId) return;
  if (voided || untilMs <= nowMs) db.run("DELETE FROM idempotency WHERE tag = ? AND key = ?", tag, key);
  else putMark(db, { tag, requestId, idempotency }, streamed ? "streamed" : "finished", untilMs);
  sweep(db, nowMs);
}

/** All keys of an account that have not ended, in the canonical form of the contract. */
export function listKeys(db: Database, tag: AccountTag, nowMs: number): AccountState["idempotency"] {
  return db.all("SELECT * FROM idempotency WHERE tag = ? AND expires > ? ORDER BY key", tag, nowMs).map((row) => ({
    key: row.key as string,
    requestId: row.rid as string,
    fingerprint: row.fingerprint as string,
    state: row.state as KeyState,
    untilMs: Number(row.expires),
  }));
}

function findMark(db: Database, tag: AccountTag, key: string, nowMs: number): Mark | undefined {
  const row = db.get("SELECT * FROM idempotency WHERE tag = ? AND key = ? AND expires > ?", tag, key, nowMs);
  return (
    row && {
      requestId: row.rid as RequestId,
      fingerprint: row.fingerprint as string,
      state: row.state as KeyState,
    }
  );
}

function putMark(
  db: Database,
  ask: { readonly tag: AccountTag; readonly requestId: string; readonly idempotency: IdempotentRequest },
  state: KeyState,
  untilMs: number,
): void {
  db.run(
    `INSERT INTO idempotency (tag, key, rid, fingerprint, state, expires) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET rid = excluded.rid, fingerprint = excluded.fingerprint, state = excluded.state,
       expires = excluded.expires`,
    ask.tag,
    ask.idempotency.key,
    ask.requestId,
    ask.idempotency.fingerprint,
    state,
    untilMs,
  );
}

function sweep(db: Database, nowMs: number): void {
  db.run(
    "DELETE FROM idempotency WHERE (tag, key) IN (SELECT tag, key FROM idempotency WHERE expires <= ? LIMIT ?)",
    nowMs,
    SWEEP_MAX,
  );
}
