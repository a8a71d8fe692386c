/** Opens the embedded store's folder: the lock that keeps a second process out, then the database. */
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { StoreError } from "../contract.ts";
import { FolderTakenError, lockFolder, makePrivate } from "../folder-lock.ts";
import { SCHEMA_STEPS, SCHEMA_VERSION } from "./schema.ts";

export type Row = Readonly<Record<string, SQLInputValue>>;

/** A database with its statements prepared once, and two strengths of commit. */
export class Database {
  readonly #db: DatabaseSync;
  readonly #unlock: () => void;
  readonly #statements = new Map<string, StatementSync>();
  #synchronous = "";

  constructor(db: DatabaseSync, unlock = () => {}) {
    this.#db = db;
    this.#unlock = unlock;
  }

  /** The first row, numbers as bigint. The statement's text is a constant of ours. */
  get(sql: string, ...values: SQLInputValue[]): Row | undefined {
    return this.#statement(sql).get(...values) as Row | undefined;
  }

  all(sql: string, ...values: SQLInputValue[]): Row[] {
    return this.#statement(sql).all(...values) as Row[];
  }

  run(sql: string, ...values: SQLInputValue[]): void {
    this.#statement(sql).run(...values);
  }

  /** A settlement: what a power cut takes, the journal replays. */
  commitNormal<T>(work: () => T): T {
    return this.#commit("NORMAL", work);
  }

  /** A write that a person asked for: on the disk before the answer. */
  commitFull<T>(work: () => T): T {
    return this.#commit("FULL", work);
  }

  close(): void {
    this.#statements.clear();
    this.#db.close();
    this.#unlock();
  }

  #commit<T>(synchronous: "NORMAL" | "FULL", work: () => T): T {
    if (this.#synchronous !== synchronous) {
      this.#db.exec(`PRAGMA synchronous = ${synchronous}`);
      this.#synchronous = synchronous;
    }
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      // A full disk may already have ended the transaction.
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      throw error;
    }
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

/**
 * Opens (or makes) the store in a folder: folder 0700, files 0600.
 * @throws StoreError when another process has the folder, or a newer version wrote it.
 */
export function openDatabase(dir: string): Database {
  const unlock = takeFolder(dir);
  try {
    chmodSync(dir, 0o700);
    const path = join(dir, "tollgate.db");
    makePrivate(path);
    return new Database(openTables(path), unlock);
  } catch (error) {
    unlock();
    throw error;
  }
}

function takeFolder(dir: string): () => void {
  try {
    return lockFolder(dir, "tollgate.lock");
  } catch (cause) {
    if (!(cause instanceof FolderTakenError)) throw cause;
    const message = "another process has the store's folder; the embedded store is for one";
    throw new StoreError("unavailable", message, { cause });
  }
}

/** The same tables in memory, which nobody else can have and nothing outlives: the model of a store in simulations. */
export function memoryDatabase(): Database {
  return new Database(openTables(":memory:"));
}

function openTables(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: 0 });
  try {
    db.exec("PRAGMA journal_mode = WAL");
    const version = Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
    if (version > SCHEMA_VERSION) throw new StoreError("unavailable", "a newer Tollgate wrote the store's folder");
    for (const [step, sql] of SCHEMA_STEPS.entries()) {
      if (step >= version) db.exec(`BEGIN; ${sql} PRAGMA user_version = ${step + 1}; COMMIT;`);
    }
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
