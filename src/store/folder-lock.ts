/** Locks a folder for one process at a time. */
import { chmodSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Another process, or another part of this one, has the folder. */
export class FolderTakenError extends Error {
  override readonly name = "FolderTakenError";
}

/** The folder cannot be made, or cannot be written to. The message says which folder and why. */
export class FolderUnusableError extends Error {
  override readonly name = "FolderUnusableError";

  constructor(dir: string, cause: unknown) {
    super(`the folder ${dir} cannot be used: ${reasonOf(cause)}`, { cause });
  }
}

const SQLITE_BUSY = 5;

/**
 * Locks a folder (0700, made if necessary) by an SQLite lock on a file in it. The kernel releases the lock when the
 * process ends, so kill -9 leaves nothing to clean up. A stopped process keeps it. Containers that share the folder see
 * the same lock. A network file system must support locks.
 * @param file the lock's name in the folder; the file stays there.
 * @returns the function that releases the folder.
 * @throws FolderTakenError, whose message names the process if the system knows it, or FolderUnusableError.
 */
export function lockFolder(dir: string, file: string): () => void {
  const path = join(dir, file);
  let lock: DatabaseSync;
  try {
    makeFolder(dir);
    makePrivate(path);
    lock = new DatabaseSync(path, { timeout: 0 });
  } catch (cause) {
    throw new FolderUnusableError(dir, cause);
  }
  try {
    // Nothing is ever written, so no rollback journal file is needed.
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (cause) {
    lock.close();
    if ((cause as { errcode?: unknown }).errcode !== SQLITE_BUSY) throw new FolderUnusableError(dir, cause);
    throw new FolderTakenError(`${holderOf(path)} has the folder ${dir}`, { cause });
  }
  return () => lock.close();
}

/**
 * Makes a folder and its missing parents, 0700. Node's own `recursive` option loops forever when the system answers
 * ENOENT below an existing folder, as in /proc (https://github.com/openclaw/openclaw/issues/130807).
 * @throws as the file system does.
 */
export function makeFolder(dir: string): void {
  const missing: string[] = [];
  for (let path = resolve(dir); !existsSync(path) && path !== dirname(path); path = dirname(path)) missing.push(path);
  for (const path of missing.reverse()) {
    try {
      mkdirSync(path, { mode: 0o700 });
    } catch (error) {
      // When two processes start at once, one of them makes it.
      const made = (error as NodeJS.ErrnoException).code === "EEXIST" && existsSync(path);
      if (!made) throw error;
    }
  }
}

/**
 * Makes an empty file that only its owner may read. SQLite gives the files next to a database the database's own mode.
 * An existing file is not opened: closing it would release every lock that this process has on it (fcntl_locking(2)).
 */
export function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, "ax", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  chmodSync(path, 0o600);
}

/** Linux: the locks of all processes that are visible to this one; proc_locks(5). */
const LOCKS = "/proc/locks";

/** Who has locked a file, as the subject of a sentence. Processes of other containers are not visible. */
function holderOf(path: string): string {
  const pid = lockOwner(path);
  if (pid === undefined) return "another process";
  return pid === process.pid ? `this process (${pid})` : `another process (${pid})`;
}

function lockOwner(path: string): number | undefined {
  let locks: string;
  try {
    locks = readFileSync(LOCKS, "utf8");
  } catch {
    return undefined;
  }
  // `1: POSIX  ADVISORY  WRITE 4062 fe:00:9981854 1073741824 1073742335`
  const inode = `:${statSync(path).ino}`;
  const fields = locks.split("\n").map((line) => line.trim().split(/\s+/));
  const found = fields.find(([, kind, , , , file]) => kind === "POSIX" && file?.endsWith(inode));
  const pid = Number(found?.[4]);
  return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
}

/** Explanations for error codes that an operator can do something about. */
const REASONS: Readonly<Record<string, string>> = {
  EACCES: "this user may not write there",
  EPERM: "this user may not write there",
  EROFS: "the file system is read-only",
  ENOENT: "a parent of the folder does not exist and cannot be made",
  ENOTDIR: "a part of the path is a file and not a folder",
  EEXIST: "a part of the path exists and is not a folder",
  ENOSPC: "the disk is full",
  EDQUOT: "this user's share of the disk is used up",
  ENAMETOOLONG: "the path is too long",
  ELOOP: "its symbolic links form a loop",
};

function reasonOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  const words = REASONS[code ?? ""];
  return words === undefined ? message : `${words} (${code})`;
}
