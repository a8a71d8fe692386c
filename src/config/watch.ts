/**
 * Hot reload. A changed file becomes new settings; an invalid one becomes problems, and the old settings stay in force.
 */
import type { Settings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import type { Sources } from "./expand.ts";
import { digest, type FileContent, findLater, findNow, isReadable } from "./found.ts";
import type { ConfigCopy, Loaded } from "./load.ts";
import type { Problem } from "./problems.ts";
import { attempt, defect, type LoadAttempt } from "./thread/attempt.ts";
import { attemptInThread, type ThreadedAttempt } from "./thread/thread.ts";

export interface WatchOptions {
  readonly file: string;
  readonly env: Sources["env"];
  /** The configuration in force. A file that has changed since it was read is noticed. */
  readonly copy: ConfigCopy;
  readonly clock: Clock;
  readonly onSettings: (settings: Settings, copy: ConfigCopy) => void;
  readonly onProblems: (problems: readonly Problem[]) => void;
}

export interface ConfigWatch {
  /**
   * Reads everything now, changed or not (SIGHUP). One of the two callbacks has been called when this returns, or will
   * be if a thread loads the file or has not finished with an earlier one.
   */
  reload(): void;
  /** Ends the watch; afterwards neither callback is called. */
  close(): void;
}

/** How often the files are read. */
const LOOK_EVERY_MS = 1_000;
/**
 * A change is loaded when two reads this far apart agree, because editors write a file in several steps and rotation
 * writes several files.
 */
const SETTLE_MS = 100;
/** A file that keeps changing is loaded as it is after this time. */
const SETTLE_MS_MAX = 1_000;

/**
 * A file of at least this many characters is loaded in a thread. This is about 45 models, which the process itself
 * loads in 35 ms. A thread needs some 200 ms of CPU time before it begins, nearly all of it to read and compile its
 * code, so for smaller files it would cost much more than it saves.
 */
export const THREAD_CHARS_MIN = 32_768;

/**
 * Reads the file, and every file that it took secrets or certificates from, once a second and compares the texts. File
 * system notifications would be faster but are not reliable: they miss changes through a symbolic link, a bind mount or
 * a network, and a busy folder floods them. These reads do not block the event loop, so a mount that hangs stops only
 * hot reload. Two reads do block it, unless a thread loads the configuration: all files at a SIGHUP (of a large
 * configuration only its own), and files that a changed configuration names for the first time.
 */
export function watchConfig(options: WatchOptions): ConfigWatch {
  const { file, copy, clock, env } = options;
  let closed = false;
  let cancel = () => {};
  const { readOnce, ...started } = readAtStart(file, copy);
  /** Digests of the files of the last attempt, by path. Only these files are watched. */
  let { tried } = started;
  /** The thread that loads the configuration, and whether another attempt was asked for since it began. */
  let underWay: ThreadedAttempt | undefined;
  let isWanted = false;
  /** What the last read found that differs from `tried`, and when the difference was first seen. */
  let changed: { readonly to: string; readonly sinceMs: number } | undefined;

  const lookIn = (ms: number): void => {
    cancel();
    if (!closed) cancel = clock.after(ms, () => void look());
  };
  const look = async (): Promise<void> => {
    const before = tried;
    const paths = [...before.keys()];
    const found = new Map(await Promise.all(paths.map(async (path) => [path, await findLater(path)] as const)));
    // A SIGHUP may have reloaded everything meanwhile.
    if (closed || tried !== before) return;
    const digests = paths.map((path) => digest(found.get(path) as FileContent));
    if (digests.every((one, at) => one === before.get(paths[at] as string))) {
      changed = undefined;
      lookIn(LOOK_EVERY_MS);
      return;
    }
    const to = digests.join();
    const nowMs = clock.monotonicMs();
    const sinceMs = changed?.sinceMs ?? nowMs;
    if (changed?.to === to || nowMs - sinceMs >= SETTLE_MS_MAX) load(found);
    else {
      changed = { to, sinceMs };
      lookIn(SETTLE_MS);
    }
  };
  /** Loads everything. @param seen what a look has just read. */
  const load = (seen: ReadonlyMap<string, FileContent>): void => {
    changed = undefined;
    tried = new Map();
    const found = seen.get(file) ?? findNow(file, readOnce);
    const input = { file, env, seen: new Map([...seen, [file, found]]), readOnce };
    if (!("text" in found) || found.text.length < THREAD_CHARS_MIN) {
      finish(attempt(input));
      return;
    }
    // No looks meanwhile: what changes until then differs from what the thread was given, and the next look sees it.
    cancel();
    underWay = attemptInThread(input, found.text);
    void underWay.result.then((result) => {
      underWay = undefined;
      if (!closed) finish(result ?? attempt(input));
    });
  };
  const finish = ({ loaded, tried: digests }: LoadAttempt): void => {
    tried = digests;
    lookIn(LOOK_EVERY_MS);
    report(options, loaded);
    if (!isWanted || closed) return;
    isWanted = false;
    load(new Map());
  };
  lookIn(SETTLE_MS);
  return {
    reload() {
      if (closed) return;
      if (underWay) isWanted = true;
      else load(new Map());
    },
    close() {
      closed = true;
      cancel();
      underWay?.stop();
    },
  };
}

function report({ file, onSettings, onProblems }: WatchOptions, loaded: Loaded): void {
  try {
    if ("settings" in loaded) onSettings(loaded.settings, loaded.copy);
    else onProblems(loaded.problems);
  } catch (error) {
    // A defect that a new file triggers must not end a gateway that runs with an older one.
    onProblems([defect(file, error)]);
  }
}

/** Digests of the files that can be read again, and the texts of the others: from a pipe or a terminal. */
function readAtStart(file: string, copy: ConfigCopy) {
  const tried = new Map<string, string>();
  const readOnce = new Map<string, string>();
  for (const [path, text] of [[file, copy.text] as const, ...copy.files]) {
    if (isReadable(path)) tried.set(path, digest({ text }));
    else readOnce.set(path, text);
  }
  return { tried, readOnce };
}
