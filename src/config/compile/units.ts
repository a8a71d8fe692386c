/** Sizes, factors and durations in the notation of the configuration. `parse…` reads what `format…` writes. */
import type { Multiplier } from "../../values/price.ts";
import { LIMITS } from "../defaults.ts";

const SIZE_UNITS = [
  ["TiB", 1024 ** 4],
  ["GiB", 1024 ** 3],
  ["MiB", 1024 ** 2],
  ["KiB", 1024],
  ["B", 1],
] as const;

const SIZE_FACTORS: ReadonlyMap<string, number> = new Map(SIZE_UNITS);

/**
 * Reads a size: a whole number, in bytes or with a binary unit (`32MiB`).
 * @returns bytes, or undefined if it is not a size or is above 2^53.
 */
export function parseSize(size: string | number): number | undefined {
  const match = /^([1-9][0-9]{0,15})(B|KiB|MiB|GiB|TiB)?$/.exec(String(size));
  if (!match) return undefined;
  const bytes = Number(match[1]) * (SIZE_FACTORS.get(match[2] ?? "B") as number);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Bytes in the largest unit that divides them: `32MiB`, `1000B`. */
export function formatSize(bytes: number): string {
  const [unit, factor] = SIZE_UNITS.find(([, candidate]) => bytes % candidate === 0) as (typeof SIZE_UNITS)[number];
  return `${bytes / factor}${unit}`;
}

const DURATION_UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
  ["ms", 1],
] as const;

/** Milliseconds in the largest unit that divides them: `5s`, `1500ms`; read back by `parseDurationMs`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0s";
  const [unit, factor] = DURATION_UNITS.find(
    ([, candidate]) => ms % candidate === 0,
  ) as (typeof DURATION_UNITS)[number];
  return `${ms / factor}${unit}`;
}

/**
 * Reads a factor with at most six decimals.
 * @returns millionths, or undefined if it is not a factor or is above LIMITS.multiplierMax.
 */
export function parseMultiplier(factor: string | number): Multiplier | undefined {
  const match = /^(0|[1-9][0-9]{0,3})(?:\.([0-9]{1,6}))?$/.exec(String(factor));
  if (!match) return undefined;
  const millionths = BigInt(match[1] as string) * 1_000_000n + BigInt((match[2] ?? "").padEnd(6, "0"));
  return millionths > BigInt(LIMITS.multiplierMax) * 1_000_000n ? undefined : (millionths as Multiplier);
}

/** A factor with as many decimals as it needs: `1`, `0.85`; read back by `parseMultiplier`. */
export function formatMultiplier(millionths: Multiplier): string {
  const decimals = (millionths % 1_000_000n).toString().padStart(6, "0").replace(/0+$/, "");
  return `${millionths / 1_000_000n}${decimals === "" ? "" : `.${decimals}`}`;
}
