/** What the program says when a command is typed wrongly, beyond what commander says. Called when all are defined. */
import { type Command, isRequired, type Option } from "../command-line.ts";

/** The words with which a command is typed, without the program's name: `code batch list`. */
export function wordsOf(command: Command): string {
  const { parent } = command;
  if (parent === null) return "";
  return [wordsOf(parent), command.name()].filter((word) => word !== "").join(" ");
}

/**
 * Shows the right form of a command below each error of its usage: its arguments, the options that it needs, and the one
 * that names an account, because accounts are arguments of some commands and options of others.
 */
export function showFormAfterErrors(program: Command): void {
  for (const command of allBelow(program)) {
    if (command.commands.length > 0) continue;
    const options = command.options.flatMap((option) => formOf(option));
    const values = command.registeredArguments.map((one) => formOfArgument(one));
    const form = [program.name(), wordsOf(command), ...values, ...options, "[options]"].join(" ");
    command.showHelpAfterError(`Usage: ${form}\nAdd --help for the options.`);
  }
}

function formOf(option: Option): string[] {
  if (isRequired(option) || option.mandatory) return [option.flags];
  return option.long === "--account" ? [`[${option.flags}]`] : [];
}

function formOfArgument(argument: Command["registeredArguments"][number]): string {
  const name = argument.variadic ? `${argument.name()}...` : argument.name();
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** Refuses an option that is typed more than once, of which only the last value would count. */
export function refuseRepeated(program: Command): void {
  const repeated = new Map<Command, Set<string>>();
  for (const command of [program, ...allBelow(program)]) {
    const twice = new Set<string>();
    repeated.set(command, twice);
    for (const option of command.options) {
      const takesOne = (option.required || option.optional) && !option.variadic;
      if (!takesOne) continue;
      let isTyped = false;
      command.on(`option:${option.name()}`, () => {
        if (isTyped) twice.add(option.flags);
        isTyped = true;
      });
    }
  }
  program.hook("preAction", (_program, command) => {
    const [flags] = [program, command].flatMap((one) => [...(repeated.get(one) ?? [])]);
    if (flags !== undefined) command.error(`error: option '${flags}' is given more than once`);
  });
}

function allBelow(command: Command): Command[] {
  return command.commands.flatMap((one) => [one, ...allBelow(one)]);
}
