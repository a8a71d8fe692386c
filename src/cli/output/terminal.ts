/** What a person at a terminal sees while a long command runs; nothing of it goes where its output goes. */

/** Where progress is written: standard error. */
export interface ProgressOut {
  write(text: string): unknown;
  /** Whether a person looks at it. */
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

/** Whether what is written there may be in bold: a person looks, and has not said no (https://no-color.org). */
export function showsColours(
  out: { readonly isTTY?: boolean | undefined },
  env: Readonly<Record<string, string | undefined>>,
): boolean {
  return out.isTTY === true && !env.NO_COLOR && env.TERM !== "dumb";
}

/** For headings; whoever writes it asks `showsColours` first. */
export const bold = (text: string): string => `\u001b[1m${text}\u001b[22m`;

const COLUMNS_DEFAULT = 80;
/** Returns to the beginning of the line and clears it. */
const CLEAR = "\r\u001b[K";

export class Terminal {
  readonly #out: ProgressOut;
  readonly #wait: (ms: number) => Promise<void>;
  #shown = false;

  /** @param wait for the pauses between tries. */
  constructor(out: ProgressOut, wait: (ms: number) => Promise<void>) {
    this.#out = out;
    this.#wait = wait;
  }

  /** Shows how far the command is, in place of what was shown before; for nobody when nobody looks. */
  progress(words: string): void {
    if (!this.#out.isTTY) return;
    const room = Math.max(20, (this.#out.columns ?? COLUMNS_DEFAULT) - 1);
    this.#out.write(CLEAR + words.replaceAll(/\p{C}/gu, "?").slice(0, room));
    this.#shown = true;
  }

  /** Takes away what was shown. */
  clear(): void {
    if (this.#shown) this.#out.write(CLEAR);
    this.#shown = false;
  }

  /** A line that stays, for programs too. */
  note(words: string): void {
    this.clear();
    this.#out.write(`${words}\n`);
  }

  wait(ms: number): Promise<void> {
    return this.#wait(ms);
  }
}
