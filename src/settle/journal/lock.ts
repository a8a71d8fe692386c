/**
 * One process per journal folder (reliability F4). A process announces itself with a file whose name says who it is, then
 * looks for others: of two that start at once at least one sees the other, and whoever sees a living one gives way. A dead
 * one's file is swept. There is nothing to tear, since the file is empty.
 */
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, realpathSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** The folder belongs to another process. */
export class JournalLockedError extends Error {
  override readonly name = "JournalLockedError";
}

interface Owner {
  readonly pid: number;
  /** Clock ticks from boot to the start of the process: a pid that was given out again starts at another one. */
  readonly started: string;
  readonly boot: string;
}

/** Folders that this very process has. */
const taken = new Set<string>();

const NAME = /^lock\.([0-9]+)\.([0-9]+)\.([0-9a-f]+)$/;

/**
 * Takes the folder for this process.
 * @returns what gives it back.
 * @throws JournalLockedError when a living process has it.
 */
export function lockFolder(dir: string): () => void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const place = realpathSync(dir);
  if (taken.has(place)) throw new JournalLockedError(`this process has the journal in ${dir} already`);
  const own = nameOf({ pid: process.pid, started: startOf(process.pid) ?? "0", boot: bootId() });
  const announced = join(dir, own);
  closeSync(openSync(announced, "a", 0o600));
  for (const name of readdirSync(dir)) {
    const owner = ownerOf(name);
    if (!owner || name === own) continue;
    if (isAlive(owner)) {
      remove(announced);
      throw new JournalLockedError(
        `process ${owner.pid} has the journal in ${dir}; give each process its own journal.dir`,
      );
    }
    remove(join(dir, name));
  }
  taken.add(place);
  return () => {
    remove(announced);
    taken.delete(place);
  };
}

function nameOf({ pid, started, boot }: Owner): string {
  return `lock.${pid}.${started}.${boot}`;
}

function ownerOf(name: string): Owner | undefined {
  const [, pid, started, boot] = NAME.exec(name) ?? [];
  return pid && started && boot ? { pid: Number(pid), started, boot } : undefined;
}

function isAlive(owner: Owner): boolean {
  if (owner.boot !== bootId()) return false;
  const started = startOf(owner.pid);
  if (started !== undefined) return started === owner.started;
  // Without a /proc to ask, a process that can be signalled lives.
  return owner.started === "0" && canSignal(owner.pid);
}

function canSignal(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Field 22 of /proc/PID/stat; the second field, in parentheses, may hold spaces. Undefined when there is none. */
function startOf(pid: number): string | undefined {
  const text = textOf(`/proc/${pid}/stat`);
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  // A zombie has ended; it only waits to be told of.
  return fields?.[0] === "Z" ? undefined : fields?.[19];
}

function bootId(): string {
  return textOf("/proc/sys/kernel/random/boot_id")?.replace(/[^0-9a-f]/g, "") || "0";
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function remove(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
