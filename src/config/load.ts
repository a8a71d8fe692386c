/** Turns the text of `tollgate.yaml` into settings, or into a list of all its problems. */

import { isObject } from "../values/json-object.ts";
import type { Settings } from "../values/settings.ts";
import { checkSchema, withoutFaults } from "./check.ts";
import type { KnownNames } from "./compile/catalog.ts";
import { compile } from "./compile/compile.ts";
import { type Loose, Reader } from "./compile/reader.ts";
import { type ConfigDocument, readDocument } from "./document.ts";
import { expandReferences, type Sources } from "./expand.ts";
import { codeOf } from "./found.ts";
import type { Problem } from "./problems.ts";
import { type ConfigFile, configSchema } from "./schema/schema.ts";

export type Loaded =
  | { readonly settings: Settings; readonly copy: ConfigCopy }
  | { readonly problems: readonly Problem[] };

/**
 * Reads a configuration.
 * @param file its name in problems.
 * @param text YAML 1.2, which includes JSON.
 * @returns the settings with a copy of the texts that they were made from, or all problems in the order of the file.
 */
export function loadText(file: string, text: string, given: Sources): Loaded {
  const files = new Map<string, string>();
  const sources = notingSources(given, files);
  const document = readDocument(text);
  const problemsOf = () => ({ problems: document.problems.list(file, document.positionOf) });
  if (document.value === undefined) return problemsOf();

  const known = knownNames(document);
  expandReferences(document, configSchema, sources);
  checkSchema(configSchema, document);
  const checked = withoutFaults(document);
  // A list or a bare string at the top has been reported; there is nothing left to check.
  if (!isObject(checked)) return problemsOf();
  const settings = compile(new Reader(document, configSchema), checked as Loose<ConfigFile>, known, sources);
  return document.problems.none ? { settings, copy: { text, files } } : problemsOf();
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

/** The names in the file before faulty values are removed, so that one fault does not cause many. */
function knownNames(document: ConfigDocument): KnownNames {
  const top = copyOf(document.value);
  return {
    top,
    upstreams: copyOf(top.upstreams),
    plans: copyOf(top.plans),
    models: copyOf(top.models),
    groups: copyOf(top.groups),
  };
}

function copyOf(value: unknown): Record<string, unknown> {
  return Object.assign(Object.create(null), isObject(value) ? value : {});
}

/*
 * A configuration as it was read. A process that gets a copy makes the same settings from it as the process that read
 * the files, even if the files have changed since.
 */

/** Holds secrets in the clear: only for another process of this gateway, never for a log. */
export interface ConfigCopy {
  readonly text: string;
  /** Texts of the files that it names (`file:/path`, `tls.ca_file` and the like), by path. */
  readonly files: ReadonlyMap<string, string>;
  /** The settings themselves, if a thread has made them (thread/packed.ts); only for a process of the same build. */
  readonly made?: { readonly build: string; readonly packed: Uint8Array };
}

/** Sources that record every file in `files`, and return the same text if a file is read again. */
function notingSources(sources: Sources, files: Map<string, string>): Sources {
  return {
    env: sources.env,
    readFile(path) {
      const text = files.get(path) ?? sources.readFile(path);
      files.set(path, text);
      return text;
    },
  };
}

/** Sources that have only the files of the copy. */
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
