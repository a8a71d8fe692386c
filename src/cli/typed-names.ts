/** Replaces member names in the admin API's messages by the options and arguments that were typed. */
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
  return reworded(admin, (message) =>
    message.replace(AT_FAULT, (whole, before: string, member: string) => {
      const name = member.replaceAll("_", "-");
      const options = command.options.filter(({ long }) => long === `--${name}`).map(({ long }) => long);
      const values = command.registeredArguments.map((one) => one.name());
      const typed = values.filter((value) => value.split("-").includes(name)).map((value) => `<${value}>`);
      const [only, another] = [...options, ...typed];
      return only === undefined || another !== undefined ? whole : `${before}${only}`;
    }),
  );
}

function reworded(admin: AdminClient, words: (message: string) => string): AdminClient {
  return {
    ...admin,
    async call(method, path, body) {
      try {
        return await admin.call(method, path, body);
      } catch (error) {
        if (!(error instanceof CliFailure)) throw error;
        throw new CliFailure(error.exitStatus, words(error.message), error.code);
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
