/**
 * Money is a whole number of nano-dollars, always a bigint in TypeScript and a decimal string at every border.
 */

/** A billionth of a US dollar. */
export type NanoUsd = bigint & { readonly __unit: "nano-usd" };

/** The most that an account may hold or a single movement may carry: 9,000,000 USD, below 2^53 nano-dollars. */
export const NANO_USD_MAX = 9_000_000_000_000_000n as NanoUsd;
export const ZERO = 0n as NanoUsd;

/** Brands a bigint that is already in nano-dollars. */
export function nanoUsd(amount: bigint): NanoUsd {
  return amount as NanoUsd;
}

/**
 * Reads an amount of US dollars as people type it: digits, optionally a point and up to nine decimals, optionally a
 * minus sign if `signed`. Anything else is rejected: blanks, exponents, hex, plus signs, leading zeros
 * (docs/failure-model.md row 38).
 * @returns nano-dollars, or undefined if the text is not an amount or exceeds NANO_USD_MAX.
 */
export function parseUsd(text: string, options: { signed?: boolean } = {}): NanoUsd | undefined {
  const match = /^(-?)(0|[1-9][0-9]{0,9})(?:\.([0-9]{1,9}))?$/.exec(text);
  if (!match) return undefined;
  const [, sign, whole, fraction = ""] = match as unknown as [string, string, string, string?];
  if (sign && !options.signed) return undefined;
  const amount = BigInt(whole) * 1_000_000_000n + BigInt(fraction.padEnd(9, "0"));
  if (amount > NANO_USD_MAX) return undefined;
  return (sign ? -amount : amount) as NanoUsd;
}

/**
 * Reads an amount of nano-dollars from outside the process (store, journal, admin API).
 * @returns undefined unless the text is a canonical non-negative integer of at most 16 digits within NANO_USD_MAX.
 */
export function parseNano(text: string): NanoUsd | undefined {
  if (!/^(0|[1-9][0-9]{0,15})$/.test(text)) return undefined;
  const amount = BigInt(text);
  return amount > NANO_USD_MAX ? undefined : (amount as NanoUsd);
}

/** US dollars as people read them, exact, without trailing zeros beyond cents: `1.50`, `0.000000001`, `-3.00`. */
export function formatUsd(amount: bigint): string {
  const sign = amount < 0n ? "-" : "";
  const absolute = amount < 0n ? -amount : amount;
  const fraction = (absolute % 1_000_000_000n)
    .toString()
    .padStart(9, "0")
    .replace(/0{1,7}$/, "");
  return `${sign}${absolute / 1_000_000_000n}.${fraction}`;
}

/** The smaller of two amounts; Math.min does not accept bigint. */
export function leastNano(a: NanoUsd, b: NanoUsd): NanoUsd {
  if (a < b) return a;
  return b;
}

/** Integer division of non-negative numbers, rounded half up: the rounding of charges. */
export function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor);
}

/** Integer division of non-negative numbers, rounded up: the rounding of holds. */
export function divideUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}
