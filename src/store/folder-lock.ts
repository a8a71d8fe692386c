/** A folder that one process has at a time. */
import { chmodSync, closeSync, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Another process, or another part of this one, has the folder. */
export class FolderTakenError extends Error {
  override readonly name = "FolderTakenError";
}

/**
 * Takes a folder (0700, made if need be) by a lock of SQLite's on a file in it. The kernel releases it when the process
 * ends, so that kill -9 leaves nothing to clean up; a process that is stopped keeps it, and containers that share the
 * folder see the same lock. A network file system must support locks.
 * @param file the lock's name in the folder; it stays there.
 * @returns what gives the folder back.
 * @throws FolderTakenError, or as the file system does.
 */
export function lockFolder(dir: string, file: string): () => void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const path = join(dir, file);
  makePrivate(path);
  const lock = new DatabaseSync(path, { timeout: 0 });
  try {
    // Nothing is ever written, so nothing need be rolled back from a file beside it.
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (cause) {
    lock.close();
    throw new FolderTakenError(`another process has the folder ${dir}`, { cause });
  }
  return () => lock.close();
}

/** An empty file that only its owner may read. SQLite gives the files beside a database the database's own mode. */
export function makePrivate(path: string): void {
  closeSync(openSync(path, "a", 0o600));
  chmodSync(path, 0o600);
}
