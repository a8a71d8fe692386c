/**
 * Shared by the definitions of commands: commander, how a command calls its gateway, and help texts of options that
 * several commands have. Each command is defined in the file that runs it; `cli.ts` registers them.
 */
import { Argument, Command, CommanderError, Help, InvalidArgumentError, Option } from "commander";
import type { AdminClient, GatewayPlace } from "./admin-client.ts";
import type { CommandResult } from "./admin-commands.ts";
import type { Follower } from "./follow/follow.ts";
import { LISTING_FORMATS } from "./output/listing.ts";
import type { Terminal } from "./output/terminal.ts";

export { Argument, Command, CommanderError, InvalidArgumentError, Option };

/**
 * Connects to the gateway, runs one command and prints its result.
 * @param interrupted message if the command is interrupted: the state in which it leaves things.
 */
export type Ask = (
  question: (client: AdminClient, terminal: Terminal) => Promise<CommandResult>,
  interrupted?: string,
) => Promise<void>;

/** Runs a command that needs the place of a gateway but no admin API, and prints its result. */
export type Own = (work: (place: GatewayPlace) => Promise<CommandResult>) => Promise<void>;

/**
 * Asks a person at a terminal to type a name before an action that cannot be undone. Without a terminal, as in a
 * script, nothing is asked.
 * @param question called only if a person is at a terminal; undefined: there is nothing to confirm.
 * @throws CliFailure 1 if another name is typed, or none
 */
export type ConfirmName = (
  question: () => Promise<{ readonly words: string; readonly name: string } | undefined>,
) => Promise<void>;

/** The same as `Ask`, for a command that with `--follow` runs until it is interrupted. */
export type Follow = (
  question: (client: AdminClient, follower: Follower) => Promise<CommandResult>,
  options: { readonly follow?: true },
) => Promise<void>;

/** Options that their command needs. */
const REQUIRED = new WeakSet<object>();

/** Whether the option's command needs it. */
export const isRequired = (option: object): boolean => REQUIRED.has(option);

/**
 * Reports all missing required options of a command together, after unknown options and arguments. Commander reports
 * only the first missing one, and before it looks for unknown ones: `--keyid x` would be answered with the statement
 * that `--key-id` is missing. Call it when all commands are defined.
 */
export function requireAtOnce(program: Command): void {
  collectRequired(program);
  program.hook("preAction", (_program, command) => {
    const missing = command.options.filter(
      (option) => isRequired(option) && command.getOptionValue(option.attributeName()) === undefined,
    );
    if (missing.length === 0) return;
    const flags = missing.map((option) => `'${option.flags}'`).join(", ");
    command.error(`error: required option${missing.length === 1 ? "" : "s"} ${flags} not specified`);
  });
}

function collectRequired(command: Command): void {
  for (const option of command.options) {
    if (!option.mandatory) continue;
    REQUIRED.add(option);
    option.mandatory = false;
  }
  for (const below of command.commands) collectRequired(below);
}

/**
 * Refuses options that would be ignored: `--json` with another `--format`, and `--every` without `--follow`. Call it
 * when all commands are defined.
 * @param isJson whether `--json` was typed
 */
export function refuseIgnored(program: Command, isJson: () => boolean): void {
  program.hook("preAction", (_program, command) => {
    const isTyped = (name: string) => command.getOptionValueSource(name) === "cli";
    // With --output, the format is that of the file, and --json that of the answer.
    const format = isTyped("format") && !isTyped("output") ? command.getOptionValue("format") : "json";
    if (isJson() && format !== "json") {
      command.error(`error: --json and --format ${format} are two forms of the same output; use one of them`);
    }
    if (isTyped("every") && !isTyped("follow")) {
      command.error("error: --every says how often --follow checks for new lines; use it with --follow");
    }
  });
}

/** The help of an option as commander writes it, and whether the option is required. */
export function optionHelp(this: Help, option: Option): string {
  const words = Help.prototype.optionDescription.call(this, option);
  return isRequired(option) ? `${words} (required)` : words;
}

/**
 * Reads an option or argument that names a file or a folder. An empty text, as of a variable that is not set, would mean
 * the current folder.
 * @throws InvalidArgumentError
 */
export function pathOf(typed: string): string {
  if (typed !== "") return typed;
  throw new InvalidArgumentError("It must name a file or a folder.");
}

/** The `--format` option of lists. */
export const listingFormat = () =>
  new Option("--format <format>", "output format: table for people, json for programs, csv for spreadsheets")
    .choices(LISTING_FORMATS)
    .default("table");
export const ONCE =
  "your id for this request; a repeat with the same id creates nothing and returns what it created before";
export const FOLLOW =
  "show the last lines, oldest first, then new ones as they arrive, until interrupted; json: one object per line";
export const EVERY = "with --follow, how often to check for new lines";
