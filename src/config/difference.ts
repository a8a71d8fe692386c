/** Compares settings at a reload: what needs a restart, and which catalog entries are removed. */
import { Secret } from "../values/secret.ts";
import type { Settings, StoreSettings } from "../values/settings.ts";

/**
 * Settings that are read once, when the process starts, with their names in the file: sockets and the peers that they
 * trust, what money is written to, secrets for authentication, and where logs and traces go.
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

/** @returns the keys of the file whose new values need a restart; a reload names them in a warning. */
export function diffSettings(old: Settings, next: Settings): { restart: string[] } {
  const waits = (key: RestartOnly) => spelled(old[key]) !== spelled(next[key]);
  const isRenewed = isSameStore(old.store, next.store);
  return {
    restart: KEYS.filter((key) => waits(key) && !(key === "store" && isRenewed)).map((key) => RESTART_ONLY[key]),
  };
}

/**
 * @returns catalog entries that the new settings no longer have, as `groups.NAME`. Keys, accounts and codes may still
 * name them.
 */
export function removedEntries({ catalog: old }: Settings, { catalog: next }: Settings): string[] {
  return (["groups", "models", "plans", "cards"] as const).flatMap((kind) =>
    [...old[kind].keys()].filter((name) => !next[kind].has(name)).map((name) => `${kind}.${name}`),
  );
}

/** The new settings, except those that need a restart. @param started the settings with which the process started. */
export function keepUntilRestart(started: Settings, next: Settings): Settings {
  const kept = Object.fromEntries(KEYS.map((key) => [key, started[key]])) as Pick<Settings, RestartOnly>;
  return isSameStore(started.store, next.store) ? { ...next, ...kept, store: next.store } : { ...next, ...kept };
}

/**
 * Whether two stores are the same except for `redis.tls`, which is read for each connection because certificates are
 * renewed.
 */
function isSameStore(old: StoreSettings, next: StoreSettings): boolean {
  return spelled(withoutTls(old)) === spelled(withoutTls(next));
}

/** The store, with `tls` reduced to whether TLS is used. */
function withoutTls(store: StoreSettings): unknown {
  return "tls" in store ? { ...store, tls: store.tls !== undefined } : store;
}

/**
 * Canonical text of a value. It is compared inside this process and never shown, so it contains secrets in the clear.
 */
function spelled(value: unknown): string | undefined {
  if (value instanceof Secret) return JSON.stringify(value.reveal());
  if (value instanceof Map || value instanceof Set) return spelled([...value]);
  if (Array.isArray(value)) return `[${value.map(spelled).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, member]) => `${JSON.stringify(key)}:${spelled(member)}`)
    .join(",")}}`;
}
