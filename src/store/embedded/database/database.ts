/** Reads and writes the embedded store's database, and decides when to commit. */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { StoreError } from "../../contract.ts";
import { Batch } from "./batch.ts";
import { type Checkpoints, PAGES_MAX } from "./checkpoints.ts";

/**
 * The most settlements that a batch keeps in memory, and that a kill leaves to the journal: a quarter of a megabyte.
 */
const GATHER_MAX = 256;
/** Settlements wait for each other if the previous one is at most this old: as long as a batch is gathered. */
const FOLLOWS_MS = 25;

export type Row = Readonly<Record<string, SQLInputValue>>;

/** Work that is done but not committed yet. */
interface Uncommitted {
  /** Answers with the result. */
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly undo: () => void;
  result: unknown;
}

/** Schedules a callback: after a moment if busy, otherwise after this turn of the event loop. */
export type Later = (work: () => void, isBusy: boolean) => void;

/** A database with cached prepared statements, two commit strengths, and the batch of unwritten settlements. */
export class Database {
  /** Changes of settlements that are not in the tables yet. */
  readonly batch = new Batch();
  readonly #db: DatabaseSync;
  readonly #unlock: () => void;
  /** Schedules the shared commit of settlements; undefined: each commit is made at once. */
  readonly #later: Later | undefined;
  readonly #checkpoints: Checkpoints | undefined;
  /** Rows written since the last commit. */
  #rows = 0;
  /** Time of the last settlement, `performance.now()`. A settlement that comes long after it does not wait. */
  #settledMs = Number.NEGATIVE_INFINITY;
  /** Number of settlements to be committed one by one, because one of a failed batch may be what made it fail. */
  #alone = 0;
  readonly #statements = new Map<string, StatementSync>();
  #synchronous = "";
  /** Work that shares the next commit. */
  #uncommitted: Uncommitted[] = [];
  #generation = 0;

  constructor(db: DatabaseSync, unlock = () => {}, later?: Later, checkpoints?: Checkpoints) {
    this.#db = db;
    this.#unlock = unlock;
    this.#later = later;
    this.#checkpoints = checkpoints;
    if (checkpoints) db.exec(`PRAGMA wal_autocheckpoint = ${PAGES_MAX}`);
  }

  /**
   * Changes after each write that a person asked for and after each failed commit: what was read before is outdated.
   */
  get generation(): number {
    return this.#generation;
  }

  /**
   * The first row, with numbers as bigint. The statement's text is one of our constants. A reader sees every
   * settlement: the batch is written first, and if that fails, so does this call.
   */
  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    this.writeOut();
    return this.getWritten(sql, ...values);
  }

  all(sql: string, ...values: SQLInputValue[]): Row[] {
    this.writeOut();
    return this.allWritten(sql, ...values);
  }

  run(sql: string, ...values: SQLInputValue[]): void {
    this.writeOut();
    this.#statement(sql).run(...values);
    this.#rows++;
  }

  /** `get` without the batch: for a row that no settlement changes, or that was already looked up in the batch. */
  getWritten(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  /** `all` without the batch. */
  allWritten(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  /**
   * A settlement. The journal replays what a kill or a power cut takes. Settlements that follow one another within some
   * milliseconds are gathered in the batch and share the cost of writing and committing.
   * @param change changes only the batch and other memory. Whatever may fail was done before.
   * @param undo called when the commit has failed, the latest settlement's first.
   * @returns a promise that resolves when it is committed, or the result itself if it is committed at once.
   */
  commitTogether<T>(change: () => T, undo = () => {}): Promise<T> | T {
    if (!this.#later) return this.#commitAlone(change, undo);
    if (this.#alone > 0) {
      this.#alone--;
      return this.#commitAlone(change, undo);
    }
    const nowMs = performance.now();
    const isBusy = nowMs - this.#settledMs < FOLLOWS_MS;
    this.#settledMs = nowMs;
    if (this.#uncommitted.length === 0) {
      // Begun now and not when the batch is written: looking up a mark takes a quarter of the time while a transaction
      // has the file.
      this.#begin("NORMAL");
      this.#later(() => this.#commitAll(), isBusy);
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const work = { resolve: resolve as Uncommitted["resolve"], reject, undo, result: undefined as unknown };
    this.#uncommitted.push(work);
    try {
      work.result = change();
    } catch (error) {
      // How much of it is in the batch is unknown.
      this.#takeBack(error);
      return promise;
    }
    if (this.#uncommitted.length >= GATHER_MAX) this.#commitAll();
    return promise;
  }

  /** A small write that is answered at once, and that a power cut may take. */
  commitNormal<T>(work: () => T): T {
    return this.#commit("NORMAL", work);
  }

  /** A write that a person asked for: it is on the disk before the answer. */
  commitFull<T>(work: () => T): T {
    this.#generation++;
    return this.#commit("FULL", work);
  }

  close(): void {
    this.#commitAll();
    this.#checkpoints?.close();
    this.#statements.clear();
    this.#db.close();
    this.#unlock();
  }

  #begin(synchronous: "NORMAL" | "FULL"): void {
    if (this.#synchronous !== synchronous) {
      this.#db.exec(`PRAGMA synchronous = ${synchronous}`);
      this.#synchronous = synchronous;
    }
    this.#statement("BEGIN IMMEDIATE").run();
  }

  #commit<T>(synchronous: "NORMAL" | "FULL", work: () => T): T {
    this.#commitAll();
    this.#begin(synchronous);
    try {
      const result = work();
      this.#endTransaction();
      return result;
    } catch (error) {
      this.#rollBack();
      throw error;
    }
  }

  #commitAlone<T>(change: () => T, undo: () => void): T {
    try {
      return this.#commit("NORMAL", () => {
        const result = change();
        this.batch.writeTo(this);
        return result;
      });
    } catch (error) {
      this.#generation++;
      this.batch.clear();
      undo();
      throw error;
    }
  }

  /** Writes the batch to the tables; it is committed later, with the shared commit. */
  writeOut(): void {
    if (this.batch.isEmpty) return;
    try {
      this.#assertTransaction();
      this.batch.writeTo(this);
    } catch (error) {
      if (this.#uncommitted.length > 1) this.#alone = this.#uncommitted.length;
      this.#takeBack(error);
      throw error;
    }
  }

  /** An earlier disk error may have ended the transaction and rolled back rows that were written for a reader. */
  #assertTransaction(): void {
    if (!this.#db.isTransaction) throw new StoreError("unavailable", "a transaction of the embedded store was ended");
  }

  #commitAll(): void {
    if (!this.#db.isOpen || this.#uncommitted.length === 0) return;
    try {
      this.writeOut();
      this.#assertTransaction();
      this.#endTransaction();
    } catch (error) {
      this.#takeBack(error);
      return;
    }
    const committed = this.#uncommitted;
    this.#uncommitted = [];
    for (const { resolve, result } of committed) resolve(result);
  }

  #endTransaction(): void {
    this.#statement("COMMIT").run();
    this.#checkpoints?.committed(this.#rows);
    this.#rows = 0;
  }

  /** Undoes everything that is not committed. */
  #takeBack(error: unknown): void {
    this.#generation++;
    this.#rollBack();
    this.batch.clear();
    const failed = this.#uncommitted;
    this.#uncommitted = [];
    for (const { undo, reject } of failed.reverse()) {
      undo();
      reject(error);
    }
  }

  #rollBack(): void {
    // A full disk may already have ended the transaction.
    if (this.#db.isTransaction) this.#statement("ROLLBACK").run();
  }

  #statement(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known) return known;
    const statement = this.#db.prepare(sql);
    statement.setReadBigInts(true);
    this.#statements.set(sql, statement);
    return statement;
  }
}
