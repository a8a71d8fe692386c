/**
 * Copies an embedded store's database as of one instant, with or without a running gateway (docs/operation.md, "Backup
 * and restore").
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreError } from "../../contract.ts";
import { DATABASE_FILE } from "./open.ts";

interface CopiedDatabase {
  readonly bytes: number;
  readonly accounts: number;
  /** Lines of all ledgers together. */
  readonly lines: number;
}

/** How long to wait while another connection locks the file: a checkpoint begins, or a gateway starts. */
const FILE_TAKEN_MS = 5_000;
/**
 * Follows the copy's own name, with the process id, so that two concurrent copies use different files. SQLite makes a
 * journal next to it.
 */
const NOT_YET_WHOLE = /^\.([0-9]+)\.part(?:-journal)?$/;

/** Whether a folder contains an embedded store. */
export const hasDatabase = (dir: string): boolean => existsSync(join(dir, DATABASE_FILE));

/**
 * Copies the database of a folder. The copy gets its name only after it is complete, checked and on the disk. Only its
 * owner may read it (0600), because it contains balances and the hashes of keys.
 * @param dir the folder of the store.
 * @param file the path of the copy; it must not exist yet.
 * @throws StoreError when there is no database, it belongs to another user, the path exists, or the copy cannot be made
 * or is damaged.
 */
export function copyDatabase(dir: string, file: string): CopiedDatabase {
  const path = join(dir, DATABASE_FILE);
  if (!hasDatabase(dir)) throw new StoreError("unavailable", `there is no embedded store in the folder ${dir}`);
  // Files that SQLite makes next to the database while it reads would belong to this user, and the gateway could not
  // open them again.
  const { uid } = statSync(path);
  if (uid !== process.getuid?.()) {
    throw new StoreError(
      "unavailable",
      `${path} belongs to another user: run this command as that user (runuser -u NAME -- …)`,
    );
  }
  // An absolute path, because SQLite treats a name that begins with `file:` as a URI with options.
  const place = resolve(file);
  // A dangling symbolic link counts as existing, too.
  if (lstatSync(place, { throwIfNoEntry: false })) throw isThere(file);
  const into = dirname(place);
  if (!existsSync(into)) throw new StoreError("unavailable", `the folder ${into} does not exist: create it first`);
  const part = `${place}.${process.pid}.part`;
  try {
    dropCutOff(place);
    // SQLite writes into this empty file, which only one user may read.
    closeSync(openSync(part, "wx", 0o600));
    const copied = writeCopy(path, part);
    toDisk(part);
    if (!isNamed(part, place)) throw isThere(file);
    toDisk(into);
    return { ...copied, bytes: statSync(place).size };
  } catch (error) {
    for (const left of [part, `${part}-journal`]) rmSync(left, { force: true, recursive: true });
    if (error instanceof StoreError) throw error;
    throw new StoreError("unavailable", `the copy ${file} cannot be made: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

function isThere(file: string): StoreError {
  return new StoreError(
    "unavailable",
    `${file} already exists, and a copy never replaces another file; name another file`,
  );
}

/** Removes what killed runs for the same copy have left. Files of a run that is still active stay. */
function dropCutOff(place: string): void {
  const [dir, name] = [dirname(place), basename(place)];
  for (const one of readdirSync(dir)) {
    const [, pid] = (one.startsWith(name) && NOT_YET_WHOLE.exec(one.slice(name.length))) || [];
    if (pid !== undefined && !isAnotherThatRuns(Number(pid))) rmSync(join(dir, one), { force: true });
  }
}

function isAnotherThatRuns(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // It runs as another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Error codes of file systems without hard links, such as USB sticks and some shares. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"]);

/**
 * Gives the copy its name. A hard link, unlike a rename, never replaces a file that appeared meanwhile.
 * @returns false if one did.
 */
function isNamed(part: string, place: string): boolean {
  try {
    linkSync(part, place);
    rmSync(part);
  } catch (error) {
    if (lstatSync(place, { throwIfNoEntry: false })) return false;
    if (!NO_LINKS.has((error as NodeJS.ErrnoException).code)) throw error;
    renameSync(part, place);
  }
  return true;
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
