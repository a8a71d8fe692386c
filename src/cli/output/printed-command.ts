/** Commands that are printed for people to run next. */
import { COMMAND } from "../../values/program/program.ts";

/** Quotes a string as one word for a shell. */
export const shellWord = (text: string): string =>
  /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** @returns options with a value, as typed: ` --search 'a b' --limit 5`. */
export function optionWords(options: Readonly<Record<string, string | undefined>>): string {
  const words = Object.entries(options).map(([name, value]) =>
    value === undefined ? "" : ` --${name} ${shellWord(value)}`,
  );
  return words.join("");
}

/**
 * The program's command with the options that were typed to locate the gateway. Without them a printed command would
 * reach another gateway.
 */
export const commandAt = ({
  admin,
  data,
}: {
  readonly admin?: string | undefined;
  readonly data?: string | undefined;
}) => COMMAND + optionWords({ admin, data });

/** A command in a message of the gateway, which may be another build than this program. */
const COMMAND_IN_MESSAGE = /(?:npx --no-install )?\btollgate (?=[a-z])/g;

/** Has the commands in a message of the gateway reach that gateway. @param command as of `commandAt` */
export const reachingSame = (message: string, command: string): string =>
  command === COMMAND ? message : message.replaceAll(COMMAND_IN_MESSAGE, () => `${command} `);
