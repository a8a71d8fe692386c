/** What a reload cannot change, and what it takes away. */
import { Secret } from "../values/secret.ts";
import type { Settings, StoreSettings } from "../values/settings.ts";

/**
 * Read once, when the process starts: sockets and what they believe, what money is written to, the secrets that prove who
 * somebody is, and where logs and traces go. By the name under which the file has them.
 */
const RESTART_ONLY = {
  listen: "listen",
  admin: "admin",
  adminToken: "admin_token",
  store: "store",
  journal: "journal",
  sealingKeys: "sealing_keys",
  console: "console",
  operatorOidc: "console.operator",
  trustProxy: "trust_proxy",
  bodyBytesMax: "body_bytes_max",
  corsOrigins: "cors_origins",
  workers: "workers",
  log: "log",
  traces: "traces",
} as const satisfies Partial<Record<keyof Settings, string>>;

type RestartOnly = keyof typeof RESTART_ONLY;

const KEYS = Object.keys(RESTART_ONLY) as RestartOnly[];

/** @returns the file's keys whose new values wait for a restart; a reload should name them in a warning. */
export function diffSettings(old: Settings, next: Settings): { restart: string[] } {
  const waits = (key: RestartOnly) => spelled(old[key]) !== spelled(next[key]);
  const isRenewed = isSameStore(old.store, next.store);
  return {
    restart: KEYS.filter((key) => waits(key) && !(key === "store" && isRenewed)).map((key) => RESTART_ONLY[key]),
  };
}

/** @returns what keys, accounts and codes may still name and the new settings no longer have, as `groups.NAME`. */
export function goneFrom({ catalog: old }: Settings, { catalog: next }: Settings): string[] {
  return (["groups", "models", "plans", "cards"] as const).flatMap((kind) =>
    [...old[kind].keys()].filter((name) => !next[kind].has(name)).map((name) => `${kind}.${name}`),
  );
}

/** New settings as far as they count before a restart. @param started those that the process has started with. */
export function keepUntilRestart(started: Settings, next: Settings): Settings {
  const kept = Object.fromEntries(KEYS.map((key) => [key, started[key]])) as Pick<Settings, RestartOnly>;
  return isSameStore(started.store, next.store) ? { ...next, ...kept, store: next.store } : { ...next, ...kept };
}

/** Whether they differ by what is in `redis.tls` at most: it is read for each connection, since certificates are renewed. */
function isSameStore(old: StoreSettings, next: StoreSettings): boolean {
  return spelled(withoutTls(old)) === spelled(withoutTls(next));
}

/** The store, and only whether it is asked by TLS. */
function withoutTls(store: StoreSettings): unknown {
  return "tls" in store ? { ...store, tls: store.tls !== undefined } : store;
}

/** Compared inside this process and never shown, so secrets count with their text. */
function spelled(value: unknown): string | undefined {
  if (value instanceof Secret) return JSON.stringify(value.reveal());
  if (value instanceof Map || value instanceof Set) return spelled([...value]);
  if (Array.isArray(value)) return `[${value.map(spelled).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}:${spelled(member)}`)
    .join(",")}}`;
}
