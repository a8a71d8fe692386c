/**
 * A configuration as it was read. A process that gets a copy makes the same settings of it as the one that read the
 * files, even if these have changed since.
 */
import type { Sources } from "./expand.ts";

/** Holds secrets in the clear: for another process of this gateway only, never for a log. */
export interface ConfigCopy {
  readonly text: string;
  /** Texts of the files that it names (`file:/path`, `tls.ca_file` and the like), by the path under which they were read. */
  readonly files: ReadonlyMap<string, string>;
}

/** Sources that note every file in `files`, and give the same text when the same file is asked for again. */
export function notingSources(sources: Sources, files: Map<string, string>): Sources {
  return {
    env: sources.env,
    readFile(path) {
      const text = files.get(path) ?? sources.readFile(path);
      files.set(path, text);
      return text;
    },
  };
}

/** Sources in which no file exists but those of the copy. */
export function sourcesOfCopy({ files }: ConfigCopy, env: Sources["env"]): Sources {
  return {
    env,
    readFile(path) {
      const text = files.get(path);
      if (text === undefined) throw Object.assign(new Error(`${path} is not in the copy`), { code: "ENOENT" });
      return text;
    },
  };
}
