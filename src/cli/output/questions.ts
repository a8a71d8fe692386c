/** Questions to a person at a terminal. */
import { createInterface } from "node:readline/promises";
import { CliFailure } from "../failure.ts";

/** Where a person types; `isTTY`: whether it is a terminal. */
export type Keyboard = NodeJS.ReadableStream & { readonly isTTY?: boolean | undefined };

export interface Question {
  readonly words: string;
  /** The value of an empty answer; without it, an empty answer is refused and the question repeated. */
  readonly standard?: string;
  /** Why an answer is invalid; undefined if it is valid. */
  readonly fault?: (answer: string) => string | undefined;
}

/**
 * Asks questions one after the other.
 * @param unanswered the message if the person cancels.
 * @returns the answers, in the order of the questions.
 * @throws CliFailure 1 if the person cancels (Ctrl-C, Ctrl-D).
 */
export async function askAll(
  questions: readonly Question[],
  keyboard: Keyboard,
  screen: { write(text: string): unknown },
  unanswered = "Nothing was written.",
): Promise<string[]> {
  const lines = createInterface({ input: keyboard, terminal: false });
  const left = Promise.withResolvers<undefined>();
  lines.once("close", () => left.resolve(undefined));
  const typed = lines[Symbol.asyncIterator]();
  const answers: string[] = [];
  try {
    for (const { words, standard, fault } of questions) {
      for (;;) {
        screen.write(`${words}${standard === undefined ? "" : ` [${standard || "none"}]`}: `);
        const { done, value } = await typed.next();
        if (done) throw new CliFailure(1, `\n${unanswered}`);
        const answer = value.trim() || standard;
        const wrong = answer === undefined ? "An answer is needed." : fault?.(answer);
        if (answer !== undefined && wrong === undefined) {
          answers.push(answer);
          break;
        }
        screen.write(`${wrong}\n`);
      }
    }
  } finally {
    lines.close();
  }
  return answers;
}
