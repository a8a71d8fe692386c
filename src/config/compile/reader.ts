/**
 * Converts checked values and reports problems in one form. The schema check has removed faulty values, so any value
 * may be missing. A reader then returns the default silently, because the problem has already been reported.
 */
import { parseDurationMs } from "../../values/time.ts";
import { shown } from "../check.ts";
import type { ConfigDocument } from "../document.ts";
import { type ConfigPath, suggestion } from "../problems.ts";
import type { ConfigFile } from "../schema/schema.ts";
import type { TSchema } from "../schema/words.ts";
import type { ParsedText } from "./addresses.ts";
import { formatDuration, formatSize, parseSize } from "./units.ts";

/** A value from which faulty parts have been removed. */
export type Loose<T> = T extends readonly (infer V)[]
  ? readonly (Loose<V> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Loose<T[K]> | undefined }
    : T;

/** The configuration file and one of its upstreams in that state. */
export type LooseConfig = Loose<ConfigFile>;
export type LooseUpstream = Loose<ConfigFile["upstreams"][string]>;

export class Reader {
  readonly #document: ConfigDocument;
  readonly #schema: TSchema;

  constructor(document: ConfigDocument, schema: TSchema) {
    this.#document = document;
    this.#schema = schema;
  }

  /** Reports a value as refused; `rule` follows "it", as in "must be …". */
  refuse(path: ConfigPath, rule: string): void {
    this.#document.problems.add(path, `${shown(path, this.#schema, this.#document)} is refused: it ${rule}`);
  }

  /** Reports a problem with its own sentence. */
  complain(path: ConfigPath, message: string, at: "key" | "value" = "value"): void {
    this.#document.problems.add(path, message, at);
  }

  /** Whether there is no problem at or below a path. */
  isWhole(path: ConfigPath): boolean {
    return !this.#document.problems.paths().some((other) => path.every((part, index) => other[index] === part));
  }

  /** Whether there is a problem with the value at a path as a whole. */
  isRefused(path: ConfigPath): boolean {
    return this.#document.problems.has(path);
  }

  /** Whether YAML reads the value as a number with a decimal point: such a number is binary. */
  isFloat(path: ConfigPath): boolean {
    return this.#document.kindAt(path) === "float";
  }

  /** Applies a parser, and reports what it finds wrong. */
  read<T>(path: ConfigPath, text: string | undefined, reader: (text: string) => ParsedText<T>): T | undefined {
    if (text === undefined) return undefined;
    const read = reader(text);
    if ("value" in read) return read.value;
    this.refuse(path, read.wrong);
    return undefined;
  }

  /** A duration above 0 and at most `maxMs`, in milliseconds. */
  durationMs(
    path: ConfigPath,
    text: string | undefined,
    defaultMs: number,
    maxMs: number,
    { zero = false }: { readonly zero?: boolean } = {},
  ): number {
    if (text === undefined) return defaultMs;
    const ms = parseDurationMs(text);
    if (ms !== undefined && (ms > 0 || zero) && ms <= maxMs) return ms;
    const bounds = `${zero ? "" : "above 0 and "}at most ${formatDuration(maxMs)}`;
    this.refuse(path, `must be a duration ${zero ? "of " : ""}${bounds}, such as 5s (ms, s, m, h, d)`);
    return defaultMs;
  }

  /** A size within bounds, in bytes. */
  sizeBytes(
    path: ConfigPath,
    size: string | number | undefined,
    defaultBytes: number,
    bounds: { min: number; max: number },
  ): number {
    if (size === undefined) return defaultBytes;
    const bytes = parseSize(size);
    if (bytes !== undefined && bytes >= bounds.min && bytes <= bounds.max) return bytes;
    this.refuse(
      path,
      `must be a size from ${formatSize(bounds.min)} to ${formatSize(bounds.max)} (B, KiB, MiB, GiB, TiB)`,
    );
    return defaultBytes;
  }

  /** Checks that a name is among the known ones. If there are none at all, that has been reported elsewhere. */
  reference(path: ConfigPath, name: string | undefined, what: string, known: Readonly<Record<string, unknown>>): void {
    if (name === undefined || name in known) return;
    const names = Object.keys(known);
    if (names.length === 0) return;
    const near = suggestion(name, names);
    const listed = near === "" ? `; add it under ${what}s, or use a name from there` : near;
    this.refuse(path, `must name one of the ${what}s of this file${listed}`);
  }
}
