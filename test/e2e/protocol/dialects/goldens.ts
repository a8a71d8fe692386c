/** Reads `test/golden/dialects`: what vendors' servers send, and what a client must understand (docs/vendor-dialects.md). */
import { globSync, readFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import type { Protocol } from "../../../../src/values/protocol.ts";

/** How an answer ends, whatever the protocol calls it. */
export type End = "stop" | "calls" | "truncated" | "refused";

/** What a client has in the end. Digits of arguments count, so they are text. */
export interface Understood {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly name: string; readonly arguments: string }[];
  readonly end: End;
  /** All input and all output; null: the server has not counted. */
  readonly usage: { readonly input: number; readonly output: number } | null;
}

/** What a client is refused with. */
export interface Refused {
  /** Of the answer; null: the stream had begun. */
  readonly status: number | null;
  /** The cause as the gateway names it, or the code that clients act on. */
  readonly means: string;
  /** What of the server's words must be left. */
  readonly words: string;
}

type Expected = { readonly error: Refused } | Understood;

/** One frame: its payload, or its payload under the name of an event. */
type Frame = { readonly event: string; readonly data: unknown } | { readonly data: unknown };

export interface Dialect {
  /** Folder and name. */
  readonly name: string;
  readonly vendor: string;
  /** What is odd about it, in a sentence. */
  readonly form: string;
  readonly source: readonly string[];
  readonly date: string;
  readonly protocol: Protocol;
  /** The model of the test's gateway; its protocol's own unless given. */
  readonly model?: string;
  /** Of the answer; 200 unless given. */
  readonly status?: number;
  readonly content_type?: string;
  readonly whole?: unknown;
  readonly frames?: readonly Frame[];
  /** A stream to the byte, in place of frames. */
  readonly stream?: string;
  readonly expect: Expected;
  /** What is different for a client of the server's own protocol; "as sent": nothing but the model's name is touched. */
  readonly own?: "as sent" | Partial<Understood>;
}

/** All of them, by vendor and name. */
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
