/** One attempt to load a changed configuration, in the process itself or in a thread (thread.ts). */
import { errorText } from "../../values/program/error-text.ts";
import type { Sources } from "../expand.ts";
import { digest, type FileContent, findNow } from "../found.ts";
import { type Loaded, loadFile } from "../load.ts";
import type { Problem } from "../problems.ts";

/** What is loaded. It is plain data, because a thread gets a copy of it. */
export interface AttemptInput {
  readonly file: string;
  readonly env: Sources["env"];
  /** Files that have been read for this attempt, by path. All others are read during it. */
  readonly seen: ReadonlyMap<string, FileContent>;
  /** Texts that were read at the start and cannot be read again: from a pipe or a terminal. */
  readonly readOnce: ReadonlyMap<string, string>;
}

export interface LoadAttempt {
  readonly loaded: Loaded;
  /** Digests of all files that it needed, by path, except of those that cannot be read again. */
  readonly tried: Map<string, string>;
}

/** Loads a configuration. Never throws: a defect that a new file triggers must not end a gateway that runs with an older one. */
export function attempt({ file, env, seen, readOnce }: AttemptInput): LoadAttempt {
  const tried = new Map<string, string>();
  const readFile = (path: string): string => {
    const found = seen.get(path) ?? findNow(path, readOnce);
    if (!readOnce.has(path)) tried.set(path, digest(found));
    if ("text" in found) return found.text;
    throw Object.assign(new Error(found.code), { code: found.code });
  };
  try {
    return { loaded: loadFile(file, { env, readFile }), tried };
  } catch (error) {
    return { loaded: { problems: [defect(file, error)] }, tried };
  }
}

/** The problem to report for a defect. */
export function defect(file: string, error: unknown): Problem {
  return unloaded(file, errorText(error));
}

/** The problem to report for a file that was not read to its end. */
export function unloaded(file: string, why: string): Problem {
  return { file, line: 1, column: 1, key: "", message: `the configuration cannot be loaded: ${why}` };
}
