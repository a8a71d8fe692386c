/** Opens the embedded store's folder, with the lock that keeps a second process out, and the database in it. */
import { chmodSync, statfsSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "../../contract.ts";
import { FolderTakenError, FolderUnusableError, lockFolder, makePrivate } from "../../folder-lock.ts";
import { Checkpoints } from "./checkpoints.ts";
import { Database, type Later } from "./database.ts";
import { SCHEMA_STEPS, SCHEMA_VERSION } from "./schema.ts";

/**
 * How long settlements are gathered. Only the next request of the same account may wait for a settlement, and only if
 * funds are short; that is a moment. At 1,600 requests a second forty settlements share a commit, at 17 us each. With
 * 10 ms twenty would share one, at 25 us each.
 */
const GATHER_MS = 25;

/**
 * Runs work in the turn after this one. A client that is alone gets the end of its answer at the end of this turn
 * (`writtenOut` in settle/settler.ts), and does not wait 0.1 ms for the commit.
 */
function afterAnswers(work: () => void): void {
  setImmediate(() => setImmediate(work));
}

/** The file in a store's folder. */
export const DATABASE_FILE = "tollgate.db";

/**
 * Opens (or makes) the store in a folder: folder 0700, files 0600.
 * @param gatherMs how long consecutive settlements wait for each other; 0: they do not wait.
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
  "only one gateway can use an embedded store: stop the other one, give this one its own folder (setting store), or share a Redis";
const ELSEWHERE = "name another folder with the setting store (embedded:DIR), or give this user write access";

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

/** The same tables in memory, private and not persistent: the model of a store in simulations. */
export function memoryDatabase(): Database {
  return new Database(openTables(":memory:"));
}

/**
 * How long a statement waits for a lock of another connection. The checkpoint thread takes one for some microseconds
 * when it begins; for anything longer the event loop must not be blocked.
 */
const FILE_TAKEN_MS = 5;

function openTables(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { timeout: FILE_TAKEN_MS });
  try {
    db.exec("PRAGMA journal_mode = WAL");
    const version = Number(db.prepare("PRAGMA user_version").get()?.user_version ?? 0);
    if (version > SCHEMA_VERSION) throw new StoreError("unavailable", "a newer Tollgate wrote the store's folder");
    const missing = SCHEMA_STEPS.slice(version).join("");
    // One transaction, so that the disk is waited for once: the first start is 15 ms faster than with one transaction
    // per step.
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

/** Less than the space that a database and the first pages of its log take. */
const ROOM_BYTES_MIN = 1024 * 1024;

/** SQLite reports a full disk as "disk is full" or "disk I/O error", depending on which of its files cannot grow. */
function notOpened(path: string, cause: Error): StoreError {
  const { bavail, bsize } = statfsSync(dirname(path));
  const advice =
    bavail * bsize < ROOM_BYTES_MIN
      ? "its disk is full: free some space and start again; nothing is lost"
      : "check that file, the files next to it, and what the system reports about their disk (dmesg)";
  return new StoreError("unavailable", `the embedded database ${path} cannot be opened (${cause.message}): ${advice}`, {
    cause,
  });
}

function damaged(path: string, cause: Error): StoreError {
  const advice =
    'move it away and restore a backup (docs/operation.md, "Backup and restore"); the journal replays what a recent backup lacks';
  return new StoreError("unavailable", `the embedded database ${path} is damaged (${cause.message}): ${advice}`, {
    cause,
  });
}
