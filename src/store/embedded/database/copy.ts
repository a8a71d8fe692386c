/** A copy of an embedded store's database, as of one instant, while its gateway runs or not (docs/operation.md, "Backup and restore"). */
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
  /** Of all ledgers together. */
  readonly lines: number;
}

/** How long another connection may have the file: a checkpoint begins, or a gateway starts. */
const FILE_TAKEN_MS = 5_000;
/** After the copy's own name, with the process that makes it: two that make one at once have a file each. SQLite has one beside it. */
const NOT_YET_WHOLE = /^\.([0-9]+)\.part(?:-journal)?$/;

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
  // From the root on: SQLite takes a name that begins with `file:` for an address, with options of its own.
  const place = resolve(file);
  // A link that leads nowhere has the place, too.
  if (lstatSync(place, { throwIfNoEntry: false })) throw isThere(file);
  const part = `${place}.${process.pid}.part`;
  try {
    dropCutOff(place);
    // SQLite writes into an empty file, which has been made for one user.
    closeSync(openSync(part, "wx", 0o600));
    const copied = writeCopy(path, part);
    toDisk(part);
    if (!isNamed(part, place)) throw isThere(file);
    toDisk(dirname(place));
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
  return new StoreError("unavailable", `${file} is there already: a copy takes no other file's place`);
}

/** Removes what runs for the same copy have left that were killed; what one that still runs has begun stays. */
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
    // It runs for another user.
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** What a file system says that has no second names for a file, as those of USB sticks and some shares. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP"]);

/**
 * Gives the copy its name. A second name, unlike a move, never takes the place of what came there meanwhile.
 * @returns false where something did.
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
