/** Amounts in the admin API's answers, and typed amounts that may be `none`. */
import { parseUsd } from "../values/money.ts";
import { CliFailure } from "./failure.ts";

/** Typed instead of an amount to remove a limit. */
export const NONE = "none";

/**
 * An amount as typed for a limit. It is checked here, because the API's messages say `null` and name its own member.
 * @returns null for `none`
 * @throws CliFailure 2 for text that is not an amount
 */
export function typedAmount(option: string, typed: string, least: "0" | "above 0"): string | null {
  if (typed === NONE) return null;
  const amount = parseUsd(typed);
  if (amount !== undefined && (least === "0" || amount > 0n)) return typed;
  const bound = least === "0" ? "of 0 or more" : "above 0";
  throw new CliFailure(2, `${option} must be an amount of US dollars ${bound}, such as 25.00, or ${NONE}.`);
}

/**
 * An amount in nano-dollars. Sums over accounts may exceed what one account may hold. A member that an earlier version
 * of the gateway does not send is 0.
 * @throws CliFailure 1 for text that is not an amount
 */
export function readAmount(text: unknown): bigint {
  if (text === undefined) return 0n;
  const match = /^(-?)([0-9]+)\.([0-9]{1,9})$/.exec(String(text));
  if (match === null) throw new CliFailure(1, "The gateway's answer has an invalid amount.");
  const [, sign, whole = "", fraction = ""] = match;
  const amount = BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0"));
  return sign === "-" ? -amount : amount;
}
