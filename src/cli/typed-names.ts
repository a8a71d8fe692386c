/** Replaces member names in the admin API's messages by the options and arguments that were typed. */
import { ACCOUNT_NAME } from "../values/words/account-name.ts";
import type { AdminClient } from "./admin-client.ts";
import type { Command } from "./command-line.ts";
import { CliFailure } from "./failure.ts";

/** A member name in a message of the API: `limit`, `budgets_usd.day`, `addresses[1]`, `models.0`. */
const MEMBER = /`([a-z_]+(?:\.[a-z_]+)?)(?:\[(\d+)\]|\.(\d+))?`/g;

/**
 * The same client, except that its refusals name the typed options instead of the API's members.
 * @param names options by member: `{ redeem_by: "--redeem-by" }`
 */
export function asTyped(admin: AdminClient, names: Readonly<Record<string, string>>): AdminClient {
  return reworded(admin, (message) => renamed(message, names));
}

/** The member at fault, with which the message of a refused value begins. */
const AT_FAULT = /^(Refused: )`([a-z_]+)`(?= (?:must|names) )/;

/**
 * The same client, except that a refusal of a value begins with the command's own option or argument: `--limit`,
 * `<key-id>`. A member that could be several of them, or none, stays.
 */
export function asTypedTo(command: Command, admin: AdminClient): AdminClient {
  return reworded(admin, (message, path) =>
    message.replace(AT_FAULT, (whole, before: string, member: string) => {
      const typed = member === "name" ? typedName(command, path) : typedAs(command, member);
      return typed === undefined ? whole : `${before}${typed}`;
    }),
  );
}

/**
 * The command's option or argument for a member, such as `--name` or `<new-name>`.
 * @param but one that is known not to be meant
 * @returns undefined if the command has none, or several
 */
function typedAs({ options, registeredArguments }: Command, member: string, but?: string): string | undefined {
  const name = member.replaceAll("_", "-");
  const flags = options.flatMap(({ long }) => (long === `--${name}` ? [long] : []));
  const values = registeredArguments.map((one) => one.name()).filter((value) => value.split("-").includes(name));
  const [only, another] = [...flags, ...values.map((value) => `<${value}>`)].filter((typed) => typed !== but);
  return another === undefined ? only : undefined;
}

/**
 * The option or argument for the member `name`. In a path it is the account, in a body what the call creates or renames;
 * the gateway checks the path first.
 */
function typedName(command: Command, path: string): string | undefined {
  const account = /^\/accounts\/([^/?]+)/.exec(path)?.[1];
  if (account === undefined) return typedAs(command, "name");
  const option = command.options.some(({ long }) => long === "--account") ? "--account" : "<name>";
  return ACCOUNT_NAME.test(decodeURIComponent(account)) ? typedAs(command, "name", option) : option;
}

function reworded(admin: AdminClient, words: (message: string, path: string) => string): AdminClient {
  return {
    ...admin,
    async call(method, path, body) {
      try {
        return await admin.call(method, path, body);
      } catch (error) {
        if (!(error instanceof CliFailure)) throw error;
        throw new CliFailure(error.exitStatus, words(error.message, path), error.code);
      }
    },
  };
}

function renamed(message: string, names: Readonly<Record<string, string>>): string {
  return message.replace(MEMBER, (whole, member: string, ...places) => {
    const option = Object.hasOwn(names, member) ? names[member] : undefined;
    if (option === undefined) return whole;
    const place = places.slice(0, 2).find((one) => one !== undefined);
    return place === undefined ? option : `${option}, no. ${Number(place) + 1},`;
  });
}
