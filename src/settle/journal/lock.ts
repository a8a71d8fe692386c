/**
 * One process per journal folder (docs/failure-model.md row F4). A process announces itself with a file whose name says
 * who it is, then looks for others: of two that start at once at least one sees the other, and whoever sees a living
 * one gives way. A dead one's file is swept. There is nothing to tear, since the file is empty.
 *
 * A process of another container or machine cannot be looked up by its pid. It shows that it lives by touching its file,
 * and counts as dead once it has not done so for `SILENT_MS`. One that was stopped for longer finds its file gone.
 */
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  unlinkSync,
  utimesSync,
} from "node:fs";
import { join } from "node:path";
import process from "node:process";

/** The folder belongs to another process. */
export class JournalLockedError extends Error {
  override readonly name = "JournalLockedError";
  /** The owner's file and when it was last touched, where that is all that can be known of the owner. */
  readonly stranger: Stranger | undefined;

  constructor(message: string, stranger?: Stranger) {
    super(message);
    this.stranger = stranger;
  }
}

interface Stranger {
  readonly file: string;
  readonly touchedMs: number;
}

/** How often a process touches its file. */
const TOUCH_EVERY_MS = 2_000;
/** After so long without a touch a process of another container or machine is taken for dead. */
const SILENT_MS = 15_000;
const LOOK_EVERY_MS = 500;

interface Owner {
  readonly pid: number;
  /** Clock ticks from boot to the start of the process: a pid that was given out again starts at another one. */
  readonly started: string;
  readonly boot: string;
  /** The pid namespace, within which pids mean something; undefined in the files of earlier versions. */
  readonly namespace: string | undefined;
}

/** Folders that this very process has. */
const taken = new Set<string>();

const NAME = /^lock\.([0-9]+)\.([0-9]+)\.([0-9a-f]+)(?:\.([0-9]+))?$/;

/**
 * Takes the folder for this process, if need be when a stranger has been silent for long enough.
 * @param onLost told when the file is gone: the folder was removed, or taken from this process, which stood still for too long.
 * @returns what gives it back. Rejects with JournalLockedError when a living process has it.
 */
export async function takeFolder(dir: string, onLost: () => void): Promise<() => void> {
  const first = new Map<string, { touchedMs: number; atMs: number }>();
  const dead = new Set<string>();
  for (;;) {
    try {
      return lockFolder(dir, dead, onLost);
    } catch (error) {
      const stranger = error instanceof JournalLockedError ? error.stranger : undefined;
      if (!stranger) throw error;
      const { file, touchedMs } = stranger;
      const seen = first.get(file) ?? { touchedMs, atMs: performance.now() };
      first.set(file, seen);
      if (seen.touchedMs !== touchedMs) throw error;
      if (performance.now() - seen.atMs >= SILENT_MS) dead.add(file);
      else await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  }
}

/**
 * Takes the folder for this process, now or not at all.
 * @param dead files of strangers that have been silent for too long.
 * @returns what gives it back.
 * @throws JournalLockedError when a living process has it, or a stranger of whom that is not known.
 */
export function lockFolder(dir: string, dead: ReadonlySet<string> = new Set(), onLost = () => {}): () => void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const place = realpathSync(dir);
  if (taken.has(place)) throw new JournalLockedError(`this process has the journal in ${dir} already`);
  const own = nameOf({
    pid: process.pid,
    started: startOf(process.pid) ?? "0",
    boot: bootId(),
    namespace: pidNamespace(),
  });
  const announced = join(dir, own);
  closeSync(openSync(announced, "a", 0o600));
  for (const name of readdirSync(dir)) {
    const owner = ownerOf(name);
    if (!owner || name === own) continue;
    const isStranger = isElsewhere(owner);
    const touchedMs = isStranger && !dead.has(name) ? touchedAt(join(dir, name)) : undefined;
    if (touchedMs !== undefined) {
      remove(announced);
      throw new JournalLockedError(
        `a process of another container or machine has the journal in ${dir}; give each its own journal.dir`,
        { file: name, touchedMs },
      );
    }
    if (!isStranger && isAlive(owner)) {
      remove(announced);
      throw new JournalLockedError(
        `process ${owner.pid} has the journal in ${dir}; give each process its own journal.dir`,
      );
    }
    remove(join(dir, name));
  }
  taken.add(place);
  const beat = setInterval(() => {
    if (touch(announced)) return;
    clearInterval(beat);
    onLost();
  }, TOUCH_EVERY_MS);
  beat.unref();
  return () => {
    clearInterval(beat);
    remove(announced);
    taken.delete(place);
  };
}

function nameOf({ pid, started, boot, namespace }: Owner): string {
  return `lock.${pid}.${started}.${boot}.${namespace}`;
}

function ownerOf(name: string): Owner | undefined {
  const [, pid, started, boot, namespace] = NAME.exec(name) ?? [];
  return pid && started && boot ? { pid: Number(pid), started, boot, namespace } : undefined;
}

/** Whether nothing can be known of the owner by its pid: it is not of this machine's present life, or of other pids. */
function isElsewhere({ boot, namespace }: Owner): boolean {
  return namespace !== undefined && (boot !== bootId() || namespace !== pidNamespace());
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

/** The number in `pid:[4026531836]`; "0" where there is none to read. */
function pidNamespace(): string {
  try {
    return /[0-9]+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0] ?? "0";
  } catch {
    return "0";
  }
}

/** Undefined when the file is gone. */
function touchedAt(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs;
}

/** False when the file is gone. A disk that fails otherwise is the journal's to tell. */
function touch(path: string): boolean {
  const now = new Date();
  try {
    utimesSync(path, now, now);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ENOENT";
  }
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
