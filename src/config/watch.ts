/**
 * Hot reload. A changed file becomes new settings; an invalid one becomes problems, and the old settings stay in force.
 */
import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { errorText } from "../values/program/error-text.ts";
import type { Settings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import type { Sources } from "./expand.ts";
import { type ConfigCopy, type Loaded, loadText } from "./load.ts";
import type { Problem } from "./problems.ts";

export interface WatchOptions extends Sources {
  readonly file: string;
  /** The configuration in force. A file that has changed since it was read is noticed. */
  readonly copy: ConfigCopy;
  readonly clock: Clock;
  readonly onSettings: (settings: Settings, copy: ConfigCopy) => void;
  readonly onProblems: (problems: readonly Problem[]) => void;
}

export interface ConfigWatch {
  /** Reads everything now, changed or not (SIGHUP). One of the two callbacks has been called when this returns. */
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

/** What was found at a path: the text of a regular file, or an error code. */
type WatchedContent = { readonly text: string } | { readonly code: string };

/**
 * Reads the file, and every file that it took secrets or certificates from, once a second and compares the texts. File
 * system notifications would be faster but are not reliable: they miss changes through a symbolic link, a bind mount or
 * a network, and a busy folder floods them. These reads do not block the event loop, so a mount that hangs stops only
 * hot reload. Two reads do block it: all files at a SIGHUP, and files that a changed configuration names for the first
 * time.
 */
export function watchConfig(options: WatchOptions): ConfigWatch {
  const { file, copy, clock, env } = options;
  let closed = false;
  let cancel = () => {};
  /** Digests of the files of the last attempt, by path. Only these files are watched. */
  let tried = new Map<string, string>();
  /** Texts that were read at the start and cannot be read again: from a pipe or a terminal. */
  const readOnce = new Map<string, string>();
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
    const digests = paths.map((path) => digest(found.get(path) as WatchedContent));
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
  const load = (seen: ReadonlyMap<string, WatchedContent>): void => {
    changed = undefined;
    tried = new Map();
    const read = (path: string): string => {
      const found = seen.get(path) ?? findNow(path, options.readFile, readOnce);
      if (!readOnce.has(path)) tried.set(path, digest(found));
      if ("text" in found) return found.text;
      throw Object.assign(new Error(found.code), { code: found.code });
    };
    lookIn(LOOK_EVERY_MS);
    try {
      const loaded = loadFile(file, { env, readFile: read });
      if ("settings" in loaded) options.onSettings(loaded.settings, loaded.copy);
      else options.onProblems(loaded.problems);
    } catch (error) {
      // A defect that a new file triggers must not end a gateway that runs with an older one.
      options.onProblems([
        { file, line: 1, column: 1, key: "", message: `the configuration cannot be loaded: ${errorText(error)}` },
      ]);
    }
  };
  for (const [path, text] of [[file, copy.text] as const, ...copy.files]) {
    if (isReadable(path)) tried.set(path, digest({ text }));
    else readOnce.set(path, text);
  }
  lookIn(SETTLE_MS);
  return {
    reload() {
      if (!closed) load(new Map());
    },
    close() {
      closed = true;
      cancel();
    },
  };
}

/** Loads a configuration from a file. If the file cannot be read, that is a problem like any other. */
export function loadFile(file: string, sources: Sources): Loaded {
  let text: string;
  try {
    text = sources.readFile(file);
  } catch (error) {
    const message = `the file cannot be read (${codeOf(error)}); use --config to name another one`;
    return { problems: [{ file, line: 1, column: 1, key: "", message }] };
  }
  return loadText(file, text, sources);
}

/** Whether a path can be read repeatedly. Reading a pipe consumes its content and waits for a writer. */
function isReadable(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    // A missing file is reported when it is read.
    return true;
  }
}

async function findLater(path: string): Promise<WatchedContent> {
  try {
    return (await stat(path)).isFile() ? { text: await readFile(path, "utf8") } : { code: "not a file" };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

/** Reads a watched file. A path without a readable file is watched too: a file may appear there later. */
function findNow(path: string, readNow: Sources["readFile"], readOnce: ReadonlyMap<string, string>): WatchedContent {
  const kept = readOnce.get(path);
  if (kept !== undefined) return { text: kept };
  if (!isReadable(path)) return { code: "not a file" };
  try {
    return { text: readNow(path) };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

function digest(found: WatchedContent): string {
  const said = "text" in found ? `text ${found.text}` : `code ${found.code}`;
  return createHash("sha256").update(said).digest("base64");
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "unreadable";
