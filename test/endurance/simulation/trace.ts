/** The events of a run, line by line: a hash that two runs of one seed must share, and the text for people. */
import { createHash } from "node:crypto";
import { BEGIN_MS, type Scheduler } from "./scheduler.ts";

export class Trace {
  readonly #scheduler: Scheduler;
  readonly #print: ((line: string) => void) | undefined;
  readonly #hash = createHash("sha256");
  #lines = "";

  constructor(scheduler: Scheduler, print?: (line: string) => void) {
    this.#scheduler = scheduler;
    this.#print = print;
  }

  note(who: string, what: string): void {
    const line = `${((this.#scheduler.nowMs - BEGIN_MS) / 1_000).toFixed(6)} ${who} ${what}`;
    this.#print?.(line);
    this.#lines += `${line}\n`;
    if (this.#lines.length < 8_192) return;
    this.#hash.update(this.#lines);
    this.#lines = "";
  }

  /** Ends the trace. */
  digest(): string {
    return this.#hash.update(this.#lines).digest("hex").slice(0, 16);
  }
}
