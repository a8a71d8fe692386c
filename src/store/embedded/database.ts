/**
 * The embedded store's database: what is read and written there and when it is committed; its folder, with the lock that keeps
 * a second process out; and its tables.
 */
import { randomUUID } from "node:crypto";
import { chmodSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { StoreError } from "../contract.ts";
import { FolderTakenError, FolderUnusableError, lockFolder, makePrivate } from "../folder-lock.ts";
import { Checkpoints, PAGES_MAX } from "../upkeep/checkpoints.ts";
import { Batch } from "./batch.ts";

export type Row = Readonly<Record<string, SQLInputValue>>;

/** Work that has been done and is not committed yet. */
interface Uncommitted {
  readonly committed: () => void;
  readonly failed: (error: unknown) => void;
}

/** Calls back soon: in a moment, or after this turn of the loop where there is nobody to wait for. */
type Later = (work: () => void, isBusy: boolean) => void;

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
  /** Whether several have shared the last one: one that comes alone waits for nobody. */
  #isBusy = false;
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
    return this.#statement(sql).all(...values) as Row[];
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

  /**
   * A settlement: what a kill or a power cut takes, the journal replays. Those of some milliseconds are gathered in the batch
   * where there are several, and share what it costs to write and to commit.
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
    if (this.#uncommitted.length === 0) {
      // Now and not when it is written: a look for a mark takes a fourth of the time where a transaction has the file already.
      this.#begin("NORMAL");
      this.#later(() => this.#commitAll(), this.#isBusy);
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    let result: T;
    const committed = () => resolve(result);
    const failed = (error: unknown) => {
      undo();
      reject(error);
    };
    this.#uncommitted.push({ committed, failed });
    try {
      result = change();
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
    this.#isBusy = committed.length > 1;
    this.#uncommitted = [];
    for (const work of committed) work.committed();
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
    for (const work of failed.reverse()) work.failed(error);
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

/**
 * Nobody waits for a settlement but its own account's next request, where funds are short, and that is a moment; with a
 * thousand requests a second ten share a commit.
 */
const GATHER_MS = 10;
/** The most that a batch has in memory, and that a kill leaves to the journal: a fourth of a megabyte. */
const GATHER_MAX = 256;

/**
 * In the turn after this one: a client that is alone has the end of its answer at the end of this turn (`writtenOut` in
 * settle/settler.ts), and does not wait for the commit, 0.1 ms.
 */
function afterAnswers(work: () => void): void {
  setImmediate(() => setImmediate(work));
}

/**
 * Opens (or makes) the store in a folder: folder 0700, files 0600.
 * @throws StoreError when another process has the folder, it cannot be written, or a newer version wrote it.
 */
export function openDatabase(dir: string): Database {
  const unlock = takeFolder(dir);
  try {
    chmodSync(dir, 0o700);
    const path = join(dir, "tollgate.db");
    makePrivate(path);
    const later: Later = (work, isBusy) => void (isBusy ? setTimeout(work, GATHER_MS) : afterAnswers(work));
    return new Database(openTables(path), unlock, later, new Checkpoints(path));
  } catch (error) {
    unlock();
    throw error;
  }
}

const FOR_ONE =
  "the embedded store is for one gateway: stop that one, give this one a folder of its own (setting store), or share a Redis";
const ELSEWHERE = "name another with the setting store (embedded:DIR), or let this user write there";

function takeFolder(dir: string): () => void {
  try {
    return lockFolder(dir, "tollgate.lock");
  } catch (cause) {
    if (cause instanceof FolderTakenError)
      throw new StoreError("unavailable", `${cause.message}; ${FOR_ONE}`, { cause });
    if (cause instanceof FolderUnusableError)
      throw new StoreError("unavailable", `${cause.message}; ${ELSEWHERE}`, { cause });
    throw cause;
  }
}

/** The same tables in memory, which nobody else can have and nothing outlives: the model of a store in simulations. */
export function memoryDatabase(): Database {
  return new Database(openTables(":memory:"));
}

/**
 * How long a statement waits for a lock that another connection has. The thread that makes checkpoints takes one for some
 * microseconds as it begins; for anything longer the event loop must not stand still.
 */
const FILE_TAKEN_MS = 5;

function openTables(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: FILE_TAKEN_MS });
  try {
    db.exec("PRAGMA journal_mode = WAL");
    const version = Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
    if (version > SCHEMA_VERSION) throw new StoreError("unavailable", "a newer Tollgate wrote the store's folder");
    const missing = SCHEMA_STEPS.slice(version).join("");
    // In one transaction, for which the disk is waited for once: the first start takes 15 ms less than with one for each step.
    if (missing !== "") db.exec(`BEGIN; ${missing} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT;`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

/*
 * Which run of the machine this is. A process that is killed leaves its commits with the kernel; a machine that loses power
 * may lose those that were not forced to the disk, the last half minute or so. So an embedded store of another run is another
 * life of it, and the journal gives back what it lacks (docs/failure-model.md invariant 33, row F5).
 */

/** Linux: random(4), a UUID made at boot. */
const BOOT_ID = "/proc/sys/kernel/random/boot_id";

/** 32 hexadecimal digits. Where the system has no such name each call gives another one, which is safe and more work. */
export function bootId(): string {
  return (systemBootId() ?? randomUUID()).replaceAll("-", "");
}

function systemBootId(): string | undefined {
  try {
    const id = readFileSync(BOOT_ID, "utf8").trim();
    return /^[0-9a-f-]{36}$/.test(id) ? id : undefined;
  } catch {
    return undefined;
  }
}

/*
 * The tables of the embedded store. What must outlive the process is here; holds, buckets and requests in flight live
 * in memory (`live.ts`) and start empty.
 */

/** What leads from each version to the next; a new folder takes every step. */
export const SCHEMA_STEPS: readonly string[] = [
  `
CREATE TABLE accounts (
  tag TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, plan TEXT NOT NULL,
  bal INTEGER NOT NULL DEFAULT 0 CHECK (bal >= 0), spent INTEGER NOT NULL DEFAULT 0, topped INTEGER NOT NULL DEFAULT 0,
  seq INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE keys (
  tag TEXT NOT NULL, hash TEXT NOT NULL, id TEXT NOT NULL, grp TEXT NOT NULL, status TEXT NOT NULL,
  created INTEGER NOT NULL, revision INTEGER NOT NULL, PRIMARY KEY (tag, hash), UNIQUE (tag, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE entitlements (
  tag TEXT NOT NULL, id TEXT NOT NULL, plan TEXT NOT NULL, grp TEXT NOT NULL, starts INTEGER NOT NULL,
  ends INTEGER NOT NULL, quota INTEGER, spent INTEGER NOT NULL DEFAULT 0, listed INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (tag, id), CHECK (quota IS NULL OR spent <= quota)
) STRICT, WITHOUT ROWID;
CREATE TABLE settled (
  tag TEXT NOT NULL, rid TEXT NOT NULL, amount INTEGER NOT NULL, record TEXT NOT NULL, expires INTEGER NOT NULL,
  PRIMARY KEY (tag, rid)
) STRICT, WITHOUT ROWID;
CREATE INDEX settled_expires ON settled (expires);
CREATE TABLE ledger (
  tag TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, kind TEXT NOT NULL, debit TEXT NOT NULL,
  credit TEXT NOT NULL, amount INTEGER NOT NULL, bal INTEGER NOT NULL, ref TEXT NOT NULL, grp TEXT NOT NULL,
  model TEXT NOT NULL, key TEXT NOT NULL, memo TEXT NOT NULL, PRIMARY KEY (tag, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE payments (
  tag TEXT NOT NULL, id TEXT NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (tag, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE days (
  tag TEXT NOT NULL, day TEXT NOT NULL, field TEXT NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (tag, day, field)
) STRICT, WITHOUT ROWID;
`,
  `
CREATE TABLE codes (
  hash TEXT PRIMARY KEY, id TEXT NOT NULL UNIQUE, card TEXT NOT NULL, plan TEXT NOT NULL, grp TEXT NOT NULL,
  lasts INTEGER NOT NULL, starts TEXT NOT NULL, quota INTEGER, state TEXT NOT NULL DEFAULT 'unused',
  created INTEGER NOT NULL, tag TEXT, claimed INTEGER
) STRICT, WITHOUT ROWID;
`,
  `
ALTER TABLE accounts ADD COLUMN plan_revision INTEGER NOT NULL DEFAULT 1;
CREATE TABLE identity (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO identity (id) VALUES (lower(hex(randomblob(16))));
`,
  `
CREATE TABLE idempotency (
  tag TEXT NOT NULL, key TEXT NOT NULL, rid TEXT NOT NULL, fingerprint TEXT NOT NULL, state TEXT NOT NULL,
  expires INTEGER NOT NULL, PRIMARY KEY (tag, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_expires ON idempotency (expires);
`,
  `
CREATE TABLE epoch (
  one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, n INTEGER NOT NULL, at INTEGER NOT NULL,
  past TEXT NOT NULL, stopped INTEGER NOT NULL
) STRICT;
`,
  `
ALTER TABLE days ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN cached_input INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN cache_write INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN output INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN reasoning INTEGER NOT NULL DEFAULT 0;
`,
  `
ALTER TABLE days ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;
ALTER TABLE days ADD COLUMN absorbed INTEGER NOT NULL DEFAULT 0;
`,
  `
ALTER TABLE keys ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN expires INTEGER;
ALTER TABLE keys ADD COLUMN previous_until INTEGER;
CREATE TABLE key_uses (
  tag TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, place TEXT NOT NULL, program TEXT NOT NULL, PRIMARY KEY (tag, id)
) STRICT, WITHOUT ROWID;
ALTER TABLE keys ADD COLUMN rotation INTEGER NOT NULL DEFAULT 0;
CREATE TABLE former_keys (
  tag TEXT NOT NULL, hash TEXT NOT NULL, id TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (tag, hash)
) STRICT, WITHOUT ROWID;
`,
  `
ALTER TABLE keys ADD COLUMN limits TEXT NOT NULL DEFAULT '';
ALTER TABLE keys ADD COLUMN caps TEXT NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN limits TEXT NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN limits_revision INTEGER NOT NULL DEFAULT 0;
CREATE TABLE budgets (
  tag TEXT NOT NULL, field TEXT NOT NULL, period INTEGER NOT NULL, spent INTEGER NOT NULL,
  before_period INTEGER NOT NULL, before_spent INTEGER NOT NULL, PRIMARY KEY (tag, field)
) STRICT, WITHOUT ROWID;
`,
  `
ALTER TABLE entitlements ADD COLUMN card TEXT;
ALTER TABLE codes ADD COLUMN expires INTEGER;
ALTER TABLE codes ADD COLUMN batch TEXT;
CREATE INDEX codes_of_batch ON codes (batch, id) WHERE batch IS NOT NULL;
CREATE TABLE code_batches (
  id TEXT PRIMARY KEY, label TEXT NOT NULL, count INTEGER NOT NULL, card TEXT NOT NULL, plan TEXT NOT NULL,
  grp TEXT NOT NULL, lasts INTEGER NOT NULL, starts TEXT NOT NULL, quota INTEGER, expires INTEGER, created INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
`,
  `
ALTER TABLE accounts ADD COLUMN notify_below INTEGER;
ALTER TABLE accounts ADD COLUMN notify_revision INTEGER NOT NULL DEFAULT 0;
CREATE TABLE notice_queues (
  tag TEXT PRIMARY KEY, last INTEGER NOT NULL DEFAULT 0, taken INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE notices (
  tag TEXT NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, texts TEXT NOT NULL, PRIMARY KEY (tag, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE notice_marks (
  tag TEXT NOT NULL, mark TEXT NOT NULL, PRIMARY KEY (tag, mark)
) STRICT, WITHOUT ROWID;
`,
  `
ALTER TABLE accounts ADD COLUMN status TEXT NOT NULL DEFAULT 'normal';
ALTER TABLE accounts ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';
ALTER TABLE accounts ADD COLUMN revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE accounts ADD COLUMN name_revision INTEGER NOT NULL DEFAULT 1;
`,
  `
CREATE TABLE sign_ins (
  owner TEXT NOT NULL, kind TEXT NOT NULL, id TEXT NOT NULL, seq INTEGER NOT NULL, created INTEGER NOT NULL, expires INTEGER,
  data TEXT NOT NULL, PRIMARY KEY (owner, kind, id)
) STRICT, WITHOUT ROWID;
`,
  `
ALTER TABLE notice_marks ADD COLUMN latest INTEGER NOT NULL DEFAULT 1;
`,
  `
ALTER TABLE accounts ADD COLUMN labels_revision INTEGER NOT NULL DEFAULT 1;
ALTER TABLE keys ADD COLUMN revisions TEXT NOT NULL DEFAULT '';
`,
];

const SCHEMA_VERSION = SCHEMA_STEPS.length;
