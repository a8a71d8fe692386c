/** Progress messages at a terminal while a long command runs. They go to standard error, not into the output. */

/** Where progress is written: standard error. */
export interface ProgressOut {
  write(text: string): unknown;
  /** Whether it is a terminal. */
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Whether output may be in bold: it is a terminal, and NO_COLOR is not set (https://no-color.org). */
export function showsColors(
  out: { readonly isTTY?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return out.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
}

/** For headings; callers check `showsColors` first. */
export const bold = (text: string): string => `\u001b[1m${text}\u001b[22m`;

const COLUMNS_DEFAULT = 80;
/** Returns to the beginning of the line and clears it. */
const CLEAR = "\r\u001b[K";

export class Terminal {
  readonly #out: ProgressOut;
  readonly #wait: (ms: number) => Promise<void>;
  #shown = false;

  /** @param wait used for pauses between retries. */
  constructor(out: ProgressOut, wait: (ms: number) => Promise<void>) {
    this.#out = out;
    this.#wait = wait;
  }

  /** Shows the progress, in place of the previous one. Does nothing without a terminal. */
  progress(words: string): void {
    if (!this.#out.isTTY) return;
    const room = Math.max(20, (this.#out.columns ?? COLUMNS_DEFAULT) - 1);
    this.#out.write(CLEAR + words.replaceAll(/\p{C}/gu, "?").slice(0, room));
    this.#shown = true;
  }

  /** Removes the progress. */
  clear(): void {
    if (this.#shown) this.#out.write(CLEAR);
    this.#shown = false;
  }

  /** Prints a line that stays, also without a terminal. */
  note(words: string): void {
    this.clear();
    this.#out.write(`${words}\n`);
  }

  wait(ms: number): Promise<void> {
    return this.#wait(ms);
  }
}
