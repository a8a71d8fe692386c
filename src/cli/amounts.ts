/** Amounts in the admin API's answers. */
import { CliFailure } from "./failure.ts";

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
