/** What a reload cannot change. */
import { Secret } from "../values/secret.ts";
import type { Settings } from "../values/settings.ts";

/** Read once, when the process starts: sockets, what money is written to, and where traces go. */
const RESTART_ONLY = [
  "listen",
  "admin",
  "store",
  "journal",
  "workers",
  "traces",
] as const satisfies readonly (keyof Settings)[];

/** @returns the keys whose new values wait for a restart; a reload should name them in a warning. */
export function diffSettings(old: Settings, next: Settings): { restart: string[] } {
  return { restart: RESTART_ONLY.filter((key) => spelled(old[key]) !== spelled(next[key])) };
}

/** New settings as far as they count before a restart. @param started those that the process has started with. */
export function keepUntilRestart(started: Settings, next: Settings): Settings {
  const { listen, admin, store, journal, workers } = started;
  return { ...next, listen, admin, store, journal, workers };
}

/** Compared inside this process and never shown, so secrets count with their text. */
function spelled(value: unknown): string | undefined {
  if (value instanceof Secret) return JSON.stringify(value.reveal());
  if (Array.isArray(value)) return `[${value.map(spelled).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}:${spelled(member)}`)
    .join(",")}}`;
}
