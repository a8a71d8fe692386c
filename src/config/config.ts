/** The entry point of this folder: turns `tollgate.yaml` into `Settings`. The only file that reads the environment. */
import { BUILD } from "../values/program/program.ts";
import { CONFIG_FILE } from "../values/settings.ts";
import { type Clock, systemClock } from "../values/time.ts";
import type { Sources } from "./expand.ts";
import { readFirst } from "./found.ts";
import { type ConfigCopy, type Loaded, loadFile, loadText, sourcesOfCopy } from "./load.ts";
import type { Problem } from "./problems.ts";
import { unpackSettings } from "./thread/packed.ts";
import * as watching from "./watch.ts";

export { DEFAULTS, LIMITS } from "./defaults.ts";
export { type DemoPlaces, demoConfig } from "./demo.ts";
export { diffSettings, keepUntilRestart, removedEntries } from "./difference.ts";
export type { ConfigCopy, Loaded } from "./load.ts";
export type { Problem } from "./problems.ts";
export { warningsOf } from "./warnings.ts";
export type { ConfigWatch } from "./watch.ts";
export { asWritten } from "./written/written.ts";
export { CONFIG_FILE };

/** Where a configuration is read from. Default: the process's environment and the file system. */
interface ConfigSources {
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Returns the text of a file, or throws as `node:fs` does. */
  readonly readFile?: ((path: string) => string) | undefined;
}

/** The process's environment. Everything else takes it as an argument. */
export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}

/**
 * Loads a configuration.
 * @param options.file the file to read. If `text` is given, only its name in problems. Default `tollgate.yaml`.
 * @param options.text the text of the configuration.
 * @returns the settings, or every problem of the file. It never throws because of the file's content.
 */
export function loadConfig(options: { file?: string | undefined; text?: string | undefined } & ConfigSources): Loaded {
  const { file = CONFIG_FILE, text } = options;
  const sources = sourcesOf(options);
  return text === undefined ? loadFile(file, sources) : loadText(file, text, sources);
}

/**
 * Makes settings from a configuration that another process has read. No file is read, even if one has changed since.
 * @param file its name in problems.
 * @returns the settings that `loadConfig` returned with the copy, if the environment is the same.
 */
export function loadCopy(file: string, copy: ConfigCopy): Loaded {
  if (copy.made?.build === BUILD.build) return { settings: unpackSettings(copy.made.packed), copy };
  return loadText(file, copy.text, sourcesOfCopy(copy, environment()));
}

/**
 * Watches a file and the files that it names. After a change it reports new settings, or problems if the new text is
 * not valid; the old settings then stay in force. `reload()` is for SIGHUP.
 * @param options.copy the configuration in force, as `loadConfig` returned it.
 */
export function watchConfig(
  options: Pick<watching.WatchOptions, "file" | "copy" | "onSettings" | "onProblems"> & {
    clock?: Clock | undefined;
  } & Pick<ConfigSources, "env">,
): watching.ConfigWatch {
  const { env = environment(), clock = systemClock } = options;
  return watching.watchConfig({ ...options, env, clock });
}

/** One problem as `tollgate check` prints it: `tollgate.yaml:12:5: models.big-1.price.input: …`. */
export function formatProblem(problem: Problem): string {
  const where = `${problem.file}:${problem.line}:${problem.column}`;
  return problem.key === "" ? `${where}: ${problem.message}` : `${where}: ${problem.key}: ${problem.message}`;
}

function sourcesOf(options: ConfigSources): Sources {
  return {
    env: options.env ?? environment(),
    readFile: options.readFile ?? readFirst,
  };
}
