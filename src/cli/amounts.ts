/** Amounts in the admin API's answers, and as they are typed where they may be left to be `none`. */
import { parseUsd } from "../values/money.ts";
import { CliFailure } from "./failure.ts";

/** What is typed in the place of a figure that there is to be none of. */
export const NONE = "none";

/**
 * An amount as it is typed for a limit, in the words of the command: the API would say `null` and name its own member.
 * @returns null for `none`
 * @throws CliFailure 2 for what is no amount
 */
export function typedAmount(option: string, typed: string, least: "0" | "above 0"): string | null {
  if (typed === NONE) return null;
  const amount = parseUsd(typed);
  if (amount !== undefined && (least === "0" || amount > 0n)) return typed;
  const bound = least === "0" ? "of 0 or more" : "above 0";
  throw new CliFailure(2, `${option} must be an amount of US dollars ${bound}, such as 25.00, or ${NONE}.`);
}

/**
 * An amount in nano-dollars; sums over accounts may pass what one account may hold. A figure that an earlier version of
 * the gateway does not have is 0.
 * @throws CliFailure 1 for what is no amount
 */
export function readAmount(text: unknown): bigint {
  if (text === undefined) return 0n;
  const match = /^(-?)([0-9]+)\.([0-9]{1,9})$/.exec(String(text));
  if (match === null) throw new CliFailure(1, "The gateway's answer has an amount that is none.");
  const [, sign, whole = "", fraction = ""] = match;
  const amount = BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0"));
  return sign === "-" ? -amount : amount;
}
