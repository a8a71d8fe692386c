/** `tollgate completion` and `tollgate man`, and the examples below the help of each command. */
import { BUILD } from "../../values/program/program.ts";
import { Argument, type Command } from "../command-line.ts";
import { bold } from "../output/terminal.ts";
import { completionScript, SHELLS, type Shell } from "./completion.ts";
import { examplesOf, guideOf } from "./guide.ts";
import { manualPage } from "./man.ts";

/** Defines both commands. @param out where they print. */
export function addGuideCommands(program: Command, out: { write(text: string): unknown }): void {
  program
    .command("completion")
    .description("print a script for shell completion of commands and options")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .action((shell: Shell) => void out.write(completionScript(shell, guideOf(program))));
  program
    .command("man")
    .description("print the manual page, for man(1)")
    .action(() => void out.write(manualPage(guideOf(program), BUILD.version)));
}

/** Adds examples below the help of each command that has some. */
export function addExamples(command: Command, path: readonly string[] = []): void {
  const examples = examplesOf(path).map((line) => `  ${line}`);
  if (examples.length > 0) command.addHelpText("after", ["", bold("Examples:"), ...examples].join("\n"));
  for (const below of command.commands) addExamples(below, [...path, below.name()]);
}
