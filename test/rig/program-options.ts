/** Options of the programs for developers, in bench/ and test/. */
import { readFileSync } from "node:fs";
import process from "node:process";
import { type ParseArgsConfig, parseArgs } from "node:util";

/**
 * Reads the options of this program. `--help` prints how to use it and ends the process; so does an option that it does
 * not have, with exit status 2.
 * @param usage default: the comment at the head of the program.
 */
export function programOptions<T extends ParseArgsConfig>(
  config: T,
  usage = headOf(process.argv[1] as string),
): ReturnType<typeof parseArgs<T>> {
  if (process.argv.slice(2).includes("--help")) {
    process.stdout.write(usage);
    process.exit();
  }
  try {
    return parseArgs(config);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (!code?.startsWith("ERR_PARSE_ARGS")) throw error;
    process.stderr.write(`${message}\n\n${usage}`);
    process.exit(2);
  }
}

/** The text of the comment with which a program begins. */
function headOf(file: string): string {
  const [, comment = ""] = /\/\*\*([\s\S]*?)\*\//.exec(readFileSync(file, "utf8")) ?? [];
  return `${comment.replace(/^ *\* ?/gm, "").trim()}\n`;
}
