/** Replaces member names in the admin API's messages by the options that were typed. */
import type { AdminClient } from "./admin-client.ts";
import { CliFailure } from "./failure.ts";

/** A member name in a message of the API: `limit`, `budgets_usd.day`, `addresses[1]`, `models.0`. */
const MEMBER = /`([a-z_]+(?:\.[a-z_]+)?)(?:\[(\d+)\]|\.(\d+))?`/g;

/**
 * The same client, except that its refusals name the typed options instead of the API's members.
 * @param names options by member: `{ redeem_by: "--redeem-by" }`
 */
export function asTyped(admin: AdminClient, names: Readonly<Record<string, string>>): AdminClient {
  return {
    async call(method, path, body) {
      try {
        return await admin.call(method, path, body);
      } catch (error) {
        if (!(error instanceof CliFailure)) throw error;
        throw new CliFailure(error.exitStatus, renamed(error.message, names), error.code);
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
