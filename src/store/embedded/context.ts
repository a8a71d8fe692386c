/** The context that every operation of the embedded store works on. */

import type { AccountTag } from "../../values/key.ts";
import { type NanoUsd, nanoUsd } from "../../values/money.ts";
import type { NoticeWriter } from "../notices.ts";
import type { Entitlement } from "../records.ts";
import type { SettledMark } from "./database/batch.ts";
import type { Database, Row } from "./database/database.ts";
import { emptyLive, type Live } from "./live.ts";
import { type AccountRow, entitlementRows, findAccountRow, findEntitlement, toEntitlement } from "./rows.ts";

/** Accounts whose rows are cached at once, about 300 bytes each. */
const REMEMBERED_MAX = 10_000;

/** Rows of one account, as they are in the database after the batch is written. */
interface Remembered {
  readonly generation: number;
  row: AccountRow;
  /** By the key's hash. */
  readonly keys: Map<string, Row>;
  entitlements: readonly Row[] | undefined;
  /** The instant as of which `entitlements` was read. */
  entitlementsAtMs: number;
}

export class Context {
  readonly db: Database;
  /** Settlements that this process has posted. */
  settlements = 0;
  readonly #now: () => number;
  readonly #live = new Map<AccountTag, Live>();
  readonly #remembered = new Map<AccountTag, Remembered>();

  readonly notices: NoticeWriter | undefined;
  /** Whether everything that the journal kept of earlier processes is in this store (`OpenOptions.isRecovered`). */
  readonly isRecovered: () => boolean;
  /** When this process opened the store, by the store's clock. */
  readonly openedAtMs: number;

  constructor(db: Database, now: () => number, notices?: NoticeWriter, isRecovered = () => false) {
    this.db = db;
    this.notices = notices;
    this.isRecovered = isRecovered;
    this.#now = now;
    this.openedAtMs = this.nowMs();
  }

  /** The store's clock, milliseconds since the epoch; read once per operation. */
  nowMs(): number {
    return Math.trunc(this.#now());
  }

  /** What an account has in flight. Call it only for accounts that exist, so that unknown tags cannot fill the map. */
  live(tag: AccountTag): Live {
    const known = this.#live.get(tag);
    if (known) return known;
    const live = emptyLive();
    this.#live.set(tag, live);
    return live;
  }

  /** An account's row, cached until the next change. */
  account(tag: AccountTag): AccountRow | undefined {
    return this.#of(tag)?.row;
  }

  /** Updates the cached row after a settlement. */
  accountSettled(tag: AccountTag, row: AccountRow): void {
    const known = this.#remembered.get(tag);
    if (known) known.row = row;
  }

  /** Updates the cached card after a settlement that it paid. */
  cardSettled(tag: AccountTag, id: string, charged: bigint): void {
    const known = this.#remembered.get(tag);
    if (!known) return;
    const paid = (row: Row) => (row.id === id ? { ...row, spent: (row.spent as bigint) + charged } : row);
    known.entitlements = known.entitlements?.map(paid);
  }

  /** The settled mark of a request until it expires, from the batch or from its table. */
  settledMark(tag: AccountTag, requestId: string, nowMs: number): SettledMark | undefined {
    const gathered = this.db.batch.mark(tag, requestId);
    const mark = gathered ?? this.#writtenMark(tag, requestId);
    return mark && mark.expires >= nowMs ? mark : undefined;
  }

  #writtenMark(tag: AccountTag, requestId: string): SettledMark | undefined {
    const sql = "SELECT amount, record, expires FROM settled WHERE tag = ? AND rid = ?";
    const row = this.db.getWritten(sql, tag, requestId);
    return row && { amount: row.amount as bigint, record: row.record as string, expires: Number(row.expires) };
  }

  /** The settled amounts of those requests whose marks are in the table, in one query. */
  writtenAmounts(tag: AccountTag, requestIds: readonly string[], nowMs: number): Map<string, NanoUsd> {
    if (requestIds.length === 0) return new Map();
    const sql =
      "SELECT rid, amount FROM settled WHERE tag = ? AND rid IN (SELECT value FROM json_each(?)) AND expires >= ?";
    const rows = this.db.allWritten(sql, tag, JSON.stringify(requestIds), nowMs);
    return new Map(rows.map(({ rid, amount }) => [rid as string, nanoUsd(amount as bigint)]));
  }

  /** A key's row, cached until the next change; unknown keys are not cached. */
  key(tag: AccountTag, hash: string): Row | undefined {
    const known = this.#of(tag);
    const seen = known?.keys.get(hash);
    if (seen || !known) return seen;
    const sql = "SELECT * FROM keys WHERE tag = ? AND hash = ?";
    const row = this.db.getWritten(sql, tag, hash) ?? this.#formerKey(tag, hash);
    if (row) known.keys.set(hash, row);
    return row;
  }

  /** The key that had this value before. Found by this value, it expires when the value does. */
  #formerKey(tag: AccountTag, hash: string): Row | undefined {
    const { db } = this;
    const former = db.getWritten("SELECT id, until FROM former_keys WHERE tag = ? AND hash = ?", tag, hash);
    const row = former && db.getWritten("SELECT * FROM keys WHERE tag = ? AND id = ?", tag, former.id ?? null);
    if (!row || !former) return undefined;
    const ends = row.expires === null || Number(row.expires) > Number(former.until) ? former.until : row.expires;
    return { ...row, expires: ends ?? null };
  }

  /** Entitlements that may still run, earliest to expire first. */
  entitlements(tag: AccountTag, nowMs: number): Entitlement[] {
    const live = this.live(tag);
    const listed = this.#entitlementRows(tag, nowMs).filter((row) => row.listed !== 0n);
    return listed.map((row) => toEntitlement(row, live));
  }

  /** Whether there are any that have left the list although they have not ended. */
  hasHiddenEntitlements(tag: AccountTag, nowMs: number): boolean {
    return this.#entitlementRows(tag, nowMs).some((row) => row.listed === 0n && (row.ends as bigint) > nowMs);
  }

  /** A card, whether or not it may still run. */
  entitlement(tag: AccountTag, id: string): Entitlement | undefined {
    const live = this.live(tag);
    const row = this.#entitlementRows(tag, Number.POSITIVE_INFINITY).find((row) => row.id === id);
    return row ? toEntitlement(row, live) : findEntitlement(this.db, tag, id, live);
  }

  #entitlementRows(tag: AccountTag, nowMs: number): readonly Row[] {
    const known = this.#of(tag);
    if (!known) return [];
    // A clock that goes back makes cards run again that had ended.
    if (known.entitlements === undefined || nowMs < known.entitlementsAtMs) {
      known.entitlementsAtMs = Math.min(nowMs, this.nowMs());
      known.entitlements = entitlementRows(this.db, tag, known.entitlementsAtMs);
    }
    return known.entitlements;
  }

  #of(tag: AccountTag): Remembered | undefined {
    const { generation } = this.db;
    const known = this.#remembered.get(tag);
    if (known?.generation === generation) return known;
    const row = findAccountRow(this.db, tag);
    if (!row) return undefined;
    if (this.#remembered.size >= REMEMBERED_MAX) this.#remembered.clear();
    const fresh = { generation, row, keys: new Map<string, Row>(), entitlements: undefined, entitlementsAtMs: 0 };
    this.#remembered.set(tag, fresh);
    return fresh;
  }
}
