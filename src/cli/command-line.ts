/**
 * What definitions of commands share: commander, how a command asks its gateway, and words of options that several have. Each
 * definition is beside what it runs; `cli.ts` puts them together.
 */
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from "commander";
import type { AdminClient, GatewayPlace } from "./admin-client.ts";
import type { CommandResult } from "./admin-commands.ts";
import type { Follower } from "./follow/follow.ts";
import { LISTING_FORMATS } from "./output/listing.ts";
import type { Terminal } from "./output/terminal.ts";

export { Argument, Command, CommanderError, InvalidArgumentError, Option };

/**
 * Connects, asks one question, prints its outcome.
 * @param interrupted what to print when the command is interrupted: the state that it leaves.
 */
export type Ask = (
  question: (client: AdminClient, terminal: Terminal) => Promise<CommandResult>,
  interrupted?: string,
) => Promise<void>;

/** Runs what needs no gateway but a place, and prints its outcome. */
export type Own = (work: (place: GatewayPlace) => Promise<CommandResult>) => Promise<void>;

/**
 * Has a person at a terminal type a name before what cannot be taken back; where nobody is at one, as in a script, nothing is asked.
 * @param question is made only for somebody; undefined: there is nothing to confirm.
 * @throws CliFailure 1 when another name is typed, or none
 */
export type ConfirmName = (
  question: () => Promise<{ readonly words: string; readonly name: string } | undefined>,
) => Promise<void>;

/** The same as `Ask` for a command that goes on until it is interrupted, if it is told to. */
export type Follow = (
  question: (client: AdminClient, follower: Follower) => Promise<CommandResult>,
  options: { readonly follow?: true },
) => Promise<void>;

/** The option of each list. */
export const listingFormat = () =>
  new Option("--format <format>", "for people, programs or spreadsheets").choices(LISTING_FORMATS).default("table");
export const ONCE = "your id of this request: sent again, it makes nothing and names what it made before";
export const FOLLOW =
  "the last lines, oldest first, and then new ones as they come, until it is interrupted; json: one a line";
export const EVERY = "with --follow, how often to look for new lines";
