/** Amounts, instants and counts as people read them. Amounts are texts of the gateway: they are cut, never computed with. */
import { T } from "../texts/texts.ts";

/**
 * An amount in US dollars with as many digits as it has, two at the least.
 * @param text as the gateway writes it: `12.5`, `-0.000000001`.
 */
export function usd(text: string): string {
  const [whole = "0", fraction = ""] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, " ");
  return T.common.usd(`${grouped}.${fraction.padEnd(2, "0")}`);
}

const locale = () => document.documentElement.lang;

/** Date and time of day in the reader's own zone. */
export function instant(iso: string): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" }).format(new Date(iso));
}

export function day(iso: string): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeZone: "UTC" }).format(new Date(iso));
}

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/** How far an instant is from now, in its largest unit: "in 3 days", "2 hours ago". */
export function fromNow(iso: string, nowMs = Date.now()): string {
  const seconds = Math.round((Date.parse(iso) - nowMs) / 1_000);
  const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? ["second", 1];
  return new Intl.RelativeTimeFormat(locale(), { numeric: "auto" }).format(Math.trunc(seconds / size), unit);
}

export function count(value: number): string {
  return new Intl.NumberFormat(locale()).format(value);
}
