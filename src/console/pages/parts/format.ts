/**
 * Amounts, instants and counts as people read them. Amounts are the gateway's texts: they are formatted, never computed
 * with.
 */
import { T } from "../texts/texts.ts";

/**
 * An amount in US dollars with all its digits, at least two after the point. Thousands are separated by a narrow space at
 * which no line breaks.
 * @param text as the gateway writes it: `12.5`, `-0.000000001`
 */
export function usd(text: string): string {
  const [whole = "0", fraction = ""] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f");
  return T.common.usd(`${grouped}.${fraction.padEnd(2, "0")}`);
}

/**
 * An amount by which a balance or a card changes: with a plus if it comes in, with a minus if it goes out.
 * @param text as for `usd`; negative for what goes out
 */
export function change(text: string): string {
  if (/^-?[0.]+$/.test(text)) return usd(text.replace("-", ""));
  return usd(text.startsWith("-") ? text : `+${text}`);
}

const locale = () => document.documentElement.lang;

/** Date and time in the reader's time zone, with its name: days, budgets and CSV files are in UTC. */
export function instant(iso: string): string {
  const at = new Date(iso);
  const text = new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeStyle: "short" }).format(at);
  const zone = new Intl.DateTimeFormat(locale(), { timeZoneName: "short" })
    .formatToParts(at)
    .find(({ type }) => type === "timeZoneName");
  return `${text} ${zone?.value ?? ""}`;
}

/**
 * The number of digits after the point of each amount in a column that it lacks to the longest one, so that the points
 * are below each other. @param texts amounts as `usd` writes them; 0 for every other text
 */
export function lackingDigits(texts: readonly string[]): readonly number[] {
  const lengths = texts.map((text) => AMOUNT.exec(text)?.[1]?.length);
  const most = Math.max(0, ...lengths.map((length) => length ?? 0));
  return lengths.map((length) => (length === undefined ? 0 : most - length));
}

const AMOUNT = /^[-+]?[\d\s]+\.(\d+)\s\D*$/;

export function day(iso: string): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: "medium", timeZone: "UTC" }).format(new Date(iso));
}

const DATE: Intl.DateTimeFormatOptions = { month: "numeric", day: "numeric" };
const MINUTE: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit" };
const SECOND: Intl.DateTimeFormatOptions = { ...MINUTE, second: "2-digit" };

/**
 * An instant at the axis of a chart, in the reader's time zone.
 * @param seconds since the epoch
 * @param step seconds between two marks of the axis: they show dates, minutes or seconds
 */
export function axisTime(seconds: number, step: number): string {
  const form = step >= 86_400 ? DATE : step >= 60 ? MINUTE : SECOND;
  return new Intl.DateTimeFormat(locale(), form).format(seconds * 1_000);
}

const UNITS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
] as const;

/**
 * The distance of an instant from now, in its largest unit: "in 3 days", "2 hours ago". From a day on, it counts dates
 * of the reader's calendar, so that "tomorrow" is never two dates away.
 */
export function fromNow(iso: string, nowMs = Date.now()): string {
  const thenMs = Date.parse(iso);
  const seconds = Math.trunc((thenMs - nowMs) / 1_000);
  const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? ["second", 1];
  const distance = unit === "day" ? (midnightMs(thenMs) - midnightMs(nowMs)) / (size * 1_000) : seconds / size;
  // A day on which the clocks change has 23 or 25 hours.
  const whole = unit === "day" ? Math.round(distance) : Math.trunc(distance);
  return new Intl.RelativeTimeFormat(locale(), { numeric: "auto" }).format(whole, unit);
}

const midnightMs = (ms: number): number => new Date(ms).setHours(0, 0, 0, 0);

export function count(value: number): string {
  return new Intl.NumberFormat(locale()).format(value);
}
