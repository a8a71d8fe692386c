/**
 * Reads `test/golden/dialects`: what vendors' servers send, and what a client must understand
 * (docs/vendor-dialects.md).
 */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Protocol } from "../../../../src/values/protocol.ts";

/** How an answer ends, in terms that all protocols share. */
export type End = "stop" | "calls" | "truncated" | "refused";

/** What a client has received in the end. Arguments are text, because their digits matter. */
export interface Understood {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly end: End;
  /** Total input and total output; null: the server has not counted. */
  readonly usage: { readonly input: number; readonly output: number } | null;
}

/** The refusal that a client gets. */
export interface Refused {
  /** Status of the answer; null: the stream had begun. */
  readonly status: number | null;
  /** The cause as the gateway names it, or the code that clients act on. */
  readonly means: string;
  /** The part of the server's text that must be kept. */
  readonly words: string;
}

type Expected = { readonly error: Refused } | Understood;

/** One frame: its payload, or its payload under an event name. */
type Frame = { readonly event: string; readonly data: unknown } | { readonly data: unknown };

export interface Dialect {
  /** Folder and name. */
  readonly name: string;
  readonly vendor: string;
  /** What is unusual about it, in one sentence. */
  readonly form: string;
  readonly source: readonly string[];
  readonly date: string;
  readonly protocol: Protocol;
  /** The model of the test's gateway; by default that of its own protocol. */
  readonly model?: string;
  /** Status of the answer; 200 by default. */
  readonly status?: number;
  readonly content_type?: string;
  readonly whole?: unknown;
  readonly frames?: readonly Frame[];
  /** A stream byte for byte, instead of frames. */
  readonly stream?: string;
  readonly expect: Expected;
  /** What differs for a client of the server's own protocol; "as sent": only the model's name is changed. */
  readonly own?: "as sent" | Partial<Understood>;
}

/** All goldens, by vendor and name. */
export function dialects(): readonly Dialect[] {
  return globSync("test/golden/dialects/*/*.json")
    .sort()
    .map((file) => ({
      ...(JSON.parse(readFileSync(file, "utf8")) as Omit<Dialect, "name">),
      name: `${basename(dirname(file))}/${basename(file, ".json")}`,
    }));
}

/** Whether a golden's server refuses. */
export function isRefused(expected: Expected): expected is { readonly error: Refused } {
  return "error" in expected;
}
