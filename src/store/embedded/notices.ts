/** Notices of the embedded store; `redis/lua/notices.lua` does the same. */
import type { AccountTag } from "../../values/key.ts";
import { PAGE_MAX, pageSize } from "../checks.ts";
import {
  type NewNotice,
  NOTICES_MAX,
  type Notice,
  type NoticeMark,
  noticeOfTexts,
  noticeTexts,
  type Outbox,
  type WaitingAccount,
  type WaitingNotices,
  waitingCount,
} from "../notices.ts";
import type { AccountState, Page } from "../records.ts";
import type { Context } from "./context.ts";
import type { Row } from "./database/database.ts";
import { type AccountRow, findAccountRow } from "./rows.ts";

/** Adds a notice within the running transaction, if the configuration asks for its kind. */
export function noteNotice(context: Context, tag: AccountTag, notice: NewNotice, nowMs: number): void {
  if (context.notices?.terms()?.kinds.has(notice.kind)) putNotice(context, tag, notice, nowMs);
}

/**
 * The notice for a balance that falls from its threshold or above to below it; undefined if it does not.
 * @param by what caused the fall; `ref` is its id. The ids of the two kinds may look the same.
 */
export function balanceNotice(
  context: Context,
  before: AccountRow,
  { balance, by, ref }: { readonly balance: bigint; readonly by: "request" | "adjustment"; readonly ref: string },
): NewNotice | undefined {
  const terms = context.notices?.terms();
  const below = terms && (before.notifyBelow ?? terms.balanceBelow);
  if (below === undefined || before.balance < below || balance >= below) return undefined;
  return { kind: "balance_low", ref, data: { balance: `${balance}`, below: `${below}`, by } };
}

function putNotice({ db, notices }: Context, outbox: Outbox, notice: NewNotice, nowMs: number): void {
  const given = db.get(
    "INSERT INTO notice_queues (tag, last) VALUES (?, 1) ON CONFLICT DO UPDATE SET last = last + 1 RETURNING last",
    outbox,
  );
  const seq = Number(given?.last);
  const texts = JSON.stringify(noticeTexts(notice));
  db.run("INSERT INTO notices (tag, seq, at, texts) VALUES (?, ?, ?, ?)", outbox, seq, nowMs, texts);
  db.run("DELETE FROM notices WHERE tag = ? AND seq <= ?", outbox, seq - NOTICES_MAX);
  notices?.noted(outbox);
}

export function addNotice(
  context: Context,
  outbox: Outbox,
  notice: NewNotice,
  once?: NoticeMark,
): "added" | "known" | "none" {
  const { db } = context;
  const nowMs = context.nowMs();
  if (outbox !== "" && findAccountRow(db, outbox) === undefined) return "none";
  const mark = `${notice.kind}:${once?.name}`;
  if (
    once &&
    db.get("SELECT 1 FROM notice_marks WHERE tag = ? AND mark = ? AND latest >= ?", outbox, mark, once.latest)
  ) {
    return "known";
  }
  db.commitFull(() => {
    if (once) {
      db.run("INSERT OR REPLACE INTO notice_marks (tag, mark, latest) VALUES (?, ?, ?)", outbox, mark, once.latest);
    }
    putNotice(context, outbox, notice, nowMs);
  });
  return "added";
}

/** Returns only committed notices: what may still be rolled back is never reported. */
export function readNotices({ db }: Context, outbox: Outbox, limit: number): WaitingNotices {
  return db.commitNormal(() => {
    const row = db.get("SELECT last, taken FROM notice_queues WHERE tag = ?", outbox);
    const named = db.get("SELECT name FROM accounts WHERE tag = ?", outbox);
    const sql = "SELECT seq, at, texts FROM notices WHERE tag = ? ORDER BY seq LIMIT ?";
    const notices = db.all(sql, outbox, pageSize(limit, NOTICES_MAX)).map(toNotice);
    return { name: String(named?.name ?? ""), ...placesOf(row), notices };
  });
}

export function takeNotice({ db }: Context, outbox: Outbox, seq: number): void {
  db.commitNormal(() => {
    db.run("UPDATE notice_queues SET taken = ?2 WHERE tag = ?1 AND taken < ?2 AND last >= ?2", outbox, seq);
    db.run("DELETE FROM notices WHERE tag = ?1 AND seq <= (SELECT taken FROM notice_queues WHERE tag = ?1)", outbox);
  });
}

export function pageNotices({ db }: Context, cursor: string | undefined, limit: number): Page<WaitingAccount> {
  const size = pageSize(limit, PAGE_MAX);
  const rows = db.all(
    `SELECT a.name, a.tag, q.last, q.taken FROM notice_queues q JOIN accounts a ON a.tag = q.tag
     WHERE q.last > q.taken AND a.name > ? ORDER BY a.name LIMIT ?`,
    cursor ?? "",
    size + 1,
  );
  const items = rows.slice(0, size).map((row) => ({
    tag: row.tag as AccountTag,
    name: row.name as string,
    waiting: waitingCount(placesOf(row)),
  }));
  return { items, next: rows.length > size ? items.at(-1)?.name : undefined };
}

/** For `inspect`. */
export function noticesState({ db }: Context, tag: AccountTag): AccountState["notices"] {
  return {
    ...placesOf(db.get("SELECT last, taken FROM notice_queues WHERE tag = ?", tag)),
    waiting: db.all("SELECT seq, at, texts FROM notices WHERE tag = ? ORDER BY seq", tag).map(toNotice),
    marks: Object.fromEntries(
      db
        .all("SELECT mark, latest FROM notice_marks WHERE tag = ? ORDER BY mark", tag)
        .map(({ mark, latest }) => [mark as string, Number(latest)]),
    ),
  };
}

function placesOf(row: Row | undefined): { readonly taken: number; readonly last: number } {
  return { taken: Number(row?.taken ?? 0), last: Number(row?.last ?? 0) };
}

function toNotice({ seq, at, texts }: Row): Notice {
  return noticeOfTexts([`${seq}`, `${at}`, ...(JSON.parse(texts as string) as string[])]);
}
