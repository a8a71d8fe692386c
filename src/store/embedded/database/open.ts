/** The embedded store's folder, with the lock that keeps a second process out, and the database in it. */
import { chmodSync, statfsSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "../../contract.ts";
import { FolderTakenError, FolderUnusableError, lockFolder, makePrivate } from "../../folder-lock.ts";
import { Checkpoints } from "./checkpoints.ts";
import { Database, type Later } from "./database.ts";
import { SCHEMA_STEPS, SCHEMA_VERSION } from "./schema.ts";

/**
 * Nobody waits for a settlement but its own account's next request, where funds are short, and that is a moment; with 1,600
 * requests a second forty share a commit. Each takes 17 us of it, 25 where twenty share one, in 10 ms.
 */
const GATHER_MS = 25;

/**
 * In the turn after this one: a client that is alone has the end of its answer at the end of this turn (`writtenOut` in
 * settle/settler.ts), and does not wait for the commit, 0.1 ms.
 */
function afterAnswers(work: () => void): void {
  setImmediate(() => setImmediate(work));
}

/** In the folder of a store. */
export const DATABASE_FILE = "tollgate.db";

/**
 * Opens (or makes) the store in a folder: folder 0700, files 0600.
 * @param gatherMs how long settlements that follow one another wait for each other; 0 for none of them.
 * @throws StoreError when another process has the folder, it cannot be written, or a newer version wrote it.
 */
export function openDatabase(dir: string, gatherMs = GATHER_MS): Database {
  const unlock = takeFolder(dir);
  try {
    chmodSync(dir, 0o700);
    const path = join(dir, DATABASE_FILE);
    makePrivate(path);
    const later: Later = (work, isBusy) =>
      void (isBusy && gatherMs > 0 ? setTimeout(work, gatherMs) : afterAnswers(work));
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
    if (isDamaged(error)) throw damaged(path, error);
    throw isOfSqlite(error) ? notOpened(path, error) : error;
  }
}

/** SQLITE_CORRUPT and SQLITE_NOTADB, in the low byte of extended codes (https://sqlite.org/rescode.html). */
const DAMAGED: readonly number[] = [11, 26];

function isDamaged(error: unknown): error is Error {
  const { errcode } = error as { errcode?: number };
  return errcode !== undefined && DAMAGED.includes(errcode & 0xff);
}

const isOfSqlite = (error: unknown): error is Error =>
  error instanceof Error && (error as NodeJS.ErrnoException).code === "ERR_SQLITE_ERROR";

/** Less than a database and its first pages beside it take. */
const ROOM_BYTES_MIN = 1024 * 1024;

/** SQLite answers a disk without room with "disk is full" or "disk I/O error", by which of its files it is that cannot grow. */
function notOpened(path: string, cause: Error): StoreError {
  const { bavail, bsize } = statfsSync(dirname(path));
  const advice =
    bavail * bsize < ROOM_BYTES_MIN
      ? "its disk is full: make room and start again, nothing is lost"
      : "look at that file, those beside it, and what the system says of their disk (dmesg)";
  return new StoreError("unavailable", `the embedded database ${path} cannot be opened (${cause.message}): ${advice}`, {
    cause,
  });
}

function damaged(path: string, cause: Error): StoreError {
  const advice =
    'keep it aside and put a backup in its place (docs/operation.md, "Backup and restore"); the journal gives back what a recent one lacks';
  return new StoreError("unavailable", `the embedded database ${path} is damaged (${cause.message}): ${advice}`, {
    cause,
  });
}
