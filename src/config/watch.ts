/** Hot reload: a changed file becomes new settings; a bad one becomes problems, and the old settings stay. */
import { createHash } from "node:crypto";
import { watch } from "node:fs";
import { dirname } from "node:path";
import type { Settings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import type { Sources } from "./expand.ts";
import { type Loaded, loadText } from "./load.ts";
import type { Problem } from "./problems.ts";

export interface WatchOptions extends Sources {
  readonly file: string;
  /** The text that is in force; without it, the file's present text counts as in force. */
  readonly text?: string | undefined;
  readonly clock: Clock;
  readonly onSettings: (settings: Settings) => void;
  readonly onProblems: (problems: readonly Problem[]) => void;
}

export interface ConfigWatch {
  /**
   * Reads the file now, changed or not: secrets that it takes from other files may have changed (SIGHUP).
   * One of the two callbacks has been called when this returns.
   */
  reload(): void;
  /** Ends the watch; neither callback is called after. */
  close(): void;
}

/** Editors and mounted volumes touch a file several times per change. */
const SETTLE_MS = 100;

/**
 * Watches the folder, not the file: editors and Kubernetes replace files by renaming, and a watch on the file would go on
 * looking at the old one. The hash of the text decides whether anything changed, so events of neighbours cost one read.
 */
export function watchConfig(options: WatchOptions): ConfigWatch {
  let closed = false;
  let cancel: (() => void) | undefined;
  let inForce = options.text === undefined ? textHash(options) : hashOf(options.text);

  const load = (evenIfUnchanged: boolean): void => {
    if (closed) return;
    const hash = textHash(options);
    if (hash === inForce && !evenIfUnchanged) return;
    inForce = hash;
    const loaded = loadFile(options.file, options);
    if ("settings" in loaded) options.onSettings(loaded.settings);
    else options.onProblems(loaded.problems);
  };
  const later = (): void => {
    cancel?.();
    cancel = options.clock.after(SETTLE_MS, () => load(false));
  };
  const watcher = watch(dirname(options.file), { persistent: false }, later);
  // The file may have changed between the load that gave `text` and the watch.
  if (textHash(options) !== inForce) later();
  watcher.on("error", (error) => {
    const message = `the folder of the file can no longer be watched (${codeOf(error)}); reload by SIGHUP`;
    if (!closed) options.onProblems([{ file: options.file, line: 1, column: 1, key: "", message }]);
  });
  return {
    reload: () => load(true),
    close() {
      closed = true;
      cancel?.();
      watcher.close();
    },
  };
}

/** A configuration from a file; that it cannot be read is a problem like others. */
export function loadFile(file: string, sources: Sources): Loaded {
  let text: string;
  try {
    text = sources.readFile(file);
  } catch (error) {
    const message = `the file cannot be read (${codeOf(error)}); name another with --config`;
    return { problems: [{ file, line: 1, column: 1, key: "", message }] };
  }
  return loadText(file, text, sources);
}

function textHash(options: WatchOptions): string | undefined {
  try {
    return hashOf(options.readFile(options.file));
  } catch {
    return undefined;
  }
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");
const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "unreadable";
