/** From the text of `tollgate.yaml` to settings, or to everything that is wrong with it. */

import { isObject } from "../values/json-object.ts";
import type { Settings } from "../values/settings.ts";
import { checkSchema, withoutFaults } from "./check.ts";
import type { KnownNames } from "./compile/catalog.ts";
import { compile } from "./compile/compile.ts";
import { type Loose, Reader } from "./compile/reader.ts";
import { type ConfigDocument, readDocument } from "./document.ts";
import { expandReferences, type Sources } from "./expand.ts";
import type { Problem } from "./problems.ts";
import { type ConfigFile, configSchema } from "./schema/schema.ts";

export type Loaded =
  | { readonly settings: Settings; readonly copy: ConfigCopy }
  | { readonly problems: readonly Problem[] };

/**
 * Reads a configuration.
 * @param file its name in problems.
 * @param text YAML 1.2, so JSON as well.
 * @returns the settings and what they were made of, or all problems in the order of the file; never both.
 */
export function loadText(file: string, text: string, given: Sources): Loaded {
  const files = new Map<string, string>();
  const sources = notingSources(given, files);
  const document = readDocument(text);
  const problemsOf = () => ({ problems: document.problems.list(file, document.spotOf) });
  if (document.value === undefined) return problemsOf();

  const known = knownNames(document);
  expandReferences(document, configSchema, sources);
  checkSchema(configSchema, document);
  const checked = withoutFaults(document);
  // A list or a bare text at the top has been complained about; there is nothing left to compare.
  if (!isObject(checked)) return problemsOf();
  const settings = compile(new Reader(document, configSchema), checked as Loose<ConfigFile>, known, sources);
  return document.problems.none ? { settings, copy: { text, files } } : problemsOf();
}

/** The names in the file before anything is taken out, so that one fault does not become a dozen. */
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
 * A configuration as it was read. A process that gets a copy makes the same settings of it as the one that read the
 * files, even if these have changed since.
 */

/** Holds secrets in the clear: for another process of this gateway only, never for a log. */
export interface ConfigCopy {
  readonly text: string;
  /** Texts of the files that it names (`file:/path`, `tls.ca_file` and the like), by the path under which they were read. */
  readonly files: ReadonlyMap<string, string>;
}

/** Sources that note every file in `files`, and give the same text when the same file is asked for again. */
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
