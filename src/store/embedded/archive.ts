/** Replaces the beginning of a ledger by one opening line; `redis/lua/ledger-archive.lua` does the same. */
import type { AccountTag } from "../../values/key.ts";
import { ARCHIVE_AGE_MS, type ArchiveOutcome } from "../ledger/opening.ts";
import type { LedgerLine } from "../records.ts";
import type { Context } from "./context.ts";
import { insertLine } from "./database/batch.ts";
import { findAccountRow } from "./rows.ts";

export function archiveLedger(
  context: Context,
  tag: AccountTag,
  { after, opening }: { readonly after: number; readonly opening: LedgerLine },
): ArchiveOutcome {
  const { db } = context;
  if (findAccountRow(db, tag) === undefined) return "unknown_account";
  const [first, second] = db.all("SELECT seq, kind FROM ledger WHERE tag = ? ORDER BY seq LIMIT 2", tag);
  const opened = first?.kind === "opening" ? Number(first.seq) : 0;
  if (opened === opening.seq) return "duplicate";
  const oldest = opened === 0 ? first : second;
  const last = db.get("SELECT at, bal FROM ledger WHERE tag = ? AND seq = ?", tag, opening.seq);
  if (opened !== after || Number(oldest?.seq) !== after + 1 || last?.bal !== opening.balance) return "moved";
  if (Number(last.at) > context.nowMs() - ARCHIVE_AGE_MS) return "too_young";
  db.commitFull(() => {
    db.run("DELETE FROM ledger WHERE tag = ? AND seq <= ?", tag, opening.seq);
    insertLine(db, tag, opening);
  });
  return "archived";
}
