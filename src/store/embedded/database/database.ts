/** What is read and written in the embedded store's database, and when it is committed. */
import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { StoreError } from "../../contract.ts";
import { Batch } from "./batch.ts";
import { type Checkpoints, PAGES_MAX } from "./checkpoints.ts";

/** The most that a batch has in memory, and that a kill leaves to the journal: a fourth of a megabyte. */
const GATHER_MAX = 256;
/** Settlements wait for each other where the last one came so short a time ago: as long as a batch is gathered. */
const FOLLOWS_MS = 25;

export type Row = Readonly<Record<string, SQLInputValue>>;

/** Work that has been done and is not committed yet. */
interface Uncommitted {
  /** Answers with the result. */
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
  readonly undo: () => void;
  result: unknown;
}

/** Calls back soon: in a moment, or after this turn of the loop where there is nobody to wait for. */
export type Later = (work: () => void, isBusy: boolean) => void;

/** A database with its statements prepared once, two strengths of commit, and what settlements have still to write to it. */
export class Database {
  /** What settlements have changed and is not in the tables yet. */
  readonly batch = new Batch();
  readonly #db: DatabaseSync;
  readonly #unlock: () => void;
  /** Calls back once settlements have waited for others to share a commit; undefined: each commit is made at once. */
  readonly #later: Later | undefined;
  readonly #checkpoints: Checkpoints | undefined;
  /** Written since the last commit. */
  #rows = 0;
  /** When the last settlement came, `performance.now()`: one that comes long after it waits for nobody. */
  #settledMs = Number.NEGATIVE_INFINITY;
  /** Settlements that are yet to be committed one by one, since one of a batch may be the reason why it could not be written. */
  #alone = 0;
  readonly #statements = new Map<string, StatementSync>();
  #synchronous = "";
  /** What shares the commit that is to come. */
  #uncommitted: Uncommitted[] = [];
  #generation = 0;

  constructor(db: DatabaseSync, unlock = () => {}, later?: Later, checkpoints?: Checkpoints) {
    this.#db = db;
    this.#unlock = unlock;
    this.#later = later;
    this.#checkpoints = checkpoints;
    if (checkpoints) db.exec(`PRAGMA wal_autocheckpoint = ${PAGES_MAX}`);
  }

  /** Another one after each write that a person asked for and each commit that failed: what was read before is old. */
  get generation(): number {
    return this.#generation;
  }

  /**
   * The first row, numbers as bigint. The statement's text is a constant of ours. Whoever reads sees every settlement: what is
   * in the batch is written first, and where that fails, so does this.
   */
  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    this.#writeOut();
    return this.getWritten(sql, ...values);
  }

  all(sql: string, ...values: SQLInputValue[]): Row[] {
    this.#writeOut();
    return this.allWritten(sql, ...values);
  }

  run(sql: string, ...values: SQLInputValue[]): void {
    this.#writeOut();
    this.#statement(sql).run(...values);
    this.#rows++;
  }

  /** `get` without the batch: for a row that no settlement changes, or that was looked for in the batch. */
  getWritten(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  /** `all` without the batch. */
  allWritten(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  /**
   * A settlement: what a kill or a power cut takes, the journal replays. Those of some milliseconds are gathered in the batch
   * where they follow one another, and share what it costs to write and to commit.
   * @param change changes the batch and what else is in memory, and nothing else; whatever may fail has been done before.
   * @param undo called when the commit has failed, the latest settlement's first.
   * @returns resolves when it is committed; the result itself where it is committed at once.
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
      // Now and not when it is written: a look for a mark takes a fourth of the time where a transaction has the file already.
      this.#begin("NORMAL");
      this.#later(() => this.#commitAll(), isBusy);
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const work = { resolve: resolve as Uncommitted["resolve"], reject, undo, result: undefined as unknown };
    this.#uncommitted.push(work);
    try {
      work.result = change();
    } catch (error) {
      // How much of it is in the batch nobody knows.
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

  /** A write that a person asked for: on the disk before the answer. */
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

  /** Puts the batch into the tables; it is committed when its time has come. */
  #writeOut(): void {
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

  /** An error of the disk, whoever met it, may have ended the transaction and taken what one who reads has had written. */
  #assertTransaction(): void {
    if (!this.#db.isTransaction) throw new StoreError("unavailable", "a transaction of the embedded store was ended");
  }

  #commitAll(): void {
    if (!this.#db.isOpen || this.#uncommitted.length === 0) return;
    try {
      this.#writeOut();
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

  /** Leaves nothing of all that is not committed. */
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
