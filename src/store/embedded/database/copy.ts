/** A copy of an embedded store's database, as of one instant, while its gateway runs or not (docs/operation.md, "Backup and restore"). */
import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "../../contract.ts";
import { DATABASE_FILE } from "./open.ts";

interface CopiedDatabase {
  readonly bytes: number;
  readonly accounts: number;
  /** Of all ledgers together. */
  readonly lines: number;
}

/** How long another connection may have the file: a checkpoint begins, or a gateway starts. */
const FILE_TAKEN_MS = 5_000;
const NOT_YET_WHOLE = ".part";

/** Whether a folder is that of an embedded store. */
export const hasDatabase = (dir: string): boolean => existsSync(join(dir, DATABASE_FILE));

/**
 * Copies the database of a folder. The copy has its name once it is whole, looked through and on the disk; it is for nobody but
 * its owner (0600), since it has balances and the hashes of keys.
 * @param dir the folder of the store.
 * @param file where the copy goes; nothing may be there.
 * @throws StoreError where there is no database, it is another user's, the place is taken, or the copy cannot be made or is not good.
 */
export function copyDatabase(dir: string, file: string): CopiedDatabase {
  const path = join(dir, DATABASE_FILE);
  if (!hasDatabase(dir)) throw new StoreError("unavailable", `there is no embedded store in the folder ${dir}`);
  // What SQLite makes beside the database while it reads would belong to somebody else, and its gateway could not open it again.
  const { uid } = statSync(path);
  if (uid !== process.getuid?.()) {
    throw new StoreError("unavailable", `${path} belongs to another user: run this as that one (runuser -u NAME -- …)`);
  }
  if (existsSync(file))
    throw new StoreError("unavailable", `${file} is there already: a copy takes no other file's place`);
  const part = `${file}${NOT_YET_WHOLE}`;
  try {
    rmSync(part, { force: true });
    // SQLite writes into an empty file, which has been made for one user.
    closeSync(openSync(part, "wx", 0o600));
    const copied = writeCopy(path, part);
    toDisk(part);
    renameSync(part, file);
    toDisk(dirname(file));
    return { ...copied, bytes: statSync(file).size };
  } catch (error) {
    rmSync(part, { force: true });
    if (error instanceof StoreError) throw error;
    throw new StoreError("unavailable", `the copy ${file} cannot be made: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function writeCopy(path: string, part: string): Pick<CopiedDatabase, "accounts" | "lines"> {
  const source = new DatabaseSync(path, { readOnly: true, timeout: FILE_TAKEN_MS });
  try {
    source.prepare("VACUUM INTO ?").run(part);
  } finally {
    source.close();
  }
  const copy = new DatabaseSync(part, { readOnly: true });
  try {
    const [found] = copy.prepare("PRAGMA quick_check(1)").all();
    if (found?.quick_check !== "ok")
      throw new StoreError("unavailable", `the copy of ${path} is damaged: ${found?.quick_check}`);
    const count = (table: string) => Number(copy.prepare(`SELECT count(*) AS count FROM ${table}`).get()?.count);
    return { accounts: count("accounts"), lines: count("ledger") };
  } finally {
    copy.close();
  }
}

function toDisk(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
