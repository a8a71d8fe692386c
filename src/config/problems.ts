/**
 * The problems of a configuration, and where they are. No message contains a secret or the value of an environment
 * variable (docs/failure-model.md row 79): values are quoted as written in the file, with control and bidirectional
 * characters escaped, and secrets not at all.
 */

import { nearest } from "../values/words/nearest.ts";
import { quoted } from "../values/words/shown.ts";
import { LIMITS } from "./defaults.ts";

/** One problem: its position in the file, the key that it is about, and what would be right. */
export interface Problem {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** From 1, in characters. */
  readonly column: number;
  /** For people, such as `models.big-1.routes[0].upstream`; empty for the file as a whole. */
  readonly key: string;
  readonly message: string;
}

/** The path of a value: keys and list indexes from the top. */
export type ConfigPath = readonly (string | number)[];

/** The `key` of a problem. */
export function keyOf(path: ConfigPath): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? shownKey(part) : `.${shownKey(part)}`;
  }
  return text;
}

const KEY_CHARS_MAX = 128;

/**
 * A key in the form in which a message may show it. `{api_key:sk-1}`, without a space after the colon, is one key with
 * a secret in it: only its name is shown. Control characters are replaced, so that they do not reach a terminal.
 */
export function shownKey(key: string): string {
  const secretive = /^(api_key|admin_token|sealing_keys|store|token|password|secret)[:=\s]/i.exec(key);
  if (secretive) return `${secretive[1]}…`;
  const printable = key.replace(/[^\x20-\x7e]/g, "?");
  return printable.length > KEY_CHARS_MAX ? `${printable.slice(0, KEY_CHARS_MAX)}…` : printable;
}

/** From 1, both. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/**
 * Which part of an entry is at fault, or the position itself if a path cannot name it (the second of two equal keys).
 */
type At = "key" | "value" | Position;

/** Collects problems, one per position: the first problem of a value is the useful one. */
export class Problems {
  readonly #found = new Map<string, { path: ConfigPath; message: string; at: At }>();
  #more = 0;

  add(path: ConfigPath, message: string, at: At = "value"): void {
    const id = JSON.stringify(typeof at === "object" ? [path, at] : path);
    if (this.#found.has(id)) return;
    if (this.#found.size >= LIMITS.problemsMax) this.#more += 1;
    else this.#found.set(id, { path, message, at });
  }

  has(path: ConfigPath): boolean {
    return this.#found.has(JSON.stringify(path));
  }

  get none(): boolean {
    return this.#found.size === 0;
  }

  /**
   * The paths of values that cannot be used. Problems with an explicit position are left out: the value at their path
   * is another, valid one.
   */
  paths(): ConfigPath[] {
    return [...this.#found.values()].flatMap(({ path, at }) => (typeof at === "object" ? [] : [path]));
  }

  /** All problems in the order of the file. */
  list(file: string, positionOf: (path: ConfigPath, at: "key" | "value") => Position): Problem[] {
    const problems = [...this.#found.values()].map(({ path, message, at }) => ({
      file,
      ...(typeof at === "object" ? at : positionOf(path, at)),
      key: keyOf(path),
      // A message may repeat a value or a name of a file from the configuration.
      message: quoted(message, message.length),
    }));
    problems.sort((a, b) => a.line - b.line || a.column - b.column);
    if (this.#more > 0) {
      problems.push({ file, line: 1, column: 1, key: "", message: `${this.#more} more problems are not shown` });
    }
    return problems;
  }
}

/** ` (did you mean "models"?)`, or an empty string if no known name is similar. */
export function suggestion(wrong: string, known: Iterable<string>): string {
  const best = nearest(wrong, known, Math.max(2, Math.floor(wrong.length / 3)));
  return best === undefined ? "" : ` (did you mean "${best}"?)`;
}
