/**
 * Configurations of tests: a typed object with a test's changes, written as YAML. Names and values that the schema does
 * not have are compile errors, and a change that changes nothing fails.
 */
import { join } from "node:path";
import type { ConfigFile } from "../../src/config/schema/schema.ts";

export type { ConfigFile };

export interface ConfigPlaces {
  readonly upstreamUrl: string;
  readonly dir: string;
  /** The `store:` setting; embedded in `dir` unless given. */
  readonly store?: string | undefined;
}

/** The changes: maps are merged member by member, everything else is replaced, and `undefined` removes. */
export type Changes<T = ConfigFile> = T extends readonly (infer U)[]
  ? readonly Frozen<U>[]
  : T extends object
    ? { readonly [K in keyof T]?: Changes<T[K]> | undefined }
    : T;

type Frozen<T> = T extends object ? { readonly [K in keyof T]: Frozen<T[K]> } : T;

/** The same change for each of these names. */
export function each<T>(names: Iterable<string>, change: T): Record<string, T> {
  return Object.fromEntries([...names].map((name) => [name, change]));
}

/** The base configuration of most tests with a change. @param change gets the base if it depends on it. */
export function testConfig(places: ConfigPlaces, change: Changes | ((base: Base) => Changes) = {}): string {
  const base = baseConfig(places);
  return yamlOf(changed(base, typeof change === "function" ? change(base) : change));
}

/** A configuration with a change. The original stays as it is. */
export function changed(config: ConfigFile, change: Changes): ConfigFile {
  return merged(config, change) as ConfigFile;
}

export type Base = ReturnType<typeof baseConfig>;

/** What a gateway of a test needs in addition to upstreams, models and groups. Every account has the plan `free`. */
export function ownConfig({ dir, store }: Pick<ConfigPlaces, "dir" | "store">) {
  return {
    listen: "127.0.0.1:0",
    admin: "127.0.0.1:0",
    admin_token: "test-admin-token",
    store: store ?? `embedded:${join(dir, "data")}`,
    journal: { dir: join(dir, "journal") },
    sealing_keys: ["test-sealing-key-of-32-characters-or-more"],
    default_plan: "free",
    plans: { free: {} },
    // A busy machine delays the event loop of a gateway that is not full at all.
    overload: { loop_delay: "10m" },
  } satisfies Partial<ConfigFile>;
}

/**
 * One model per protocol under its own name, and one that the route renames. A group with `money` in its name is
 * pay-per-use. Prices are 1 USD (input) and 10 USD (output) per million tokens.
 */
export function baseConfig({ upstreamUrl, ...places }: ConfigPlaces) {
  const price = { input: "1", cached_input: "0.1", cache_write: "1.25", output: "10" };
  const model = (upstream: string, more: { model?: string } = {}) => ({
    plans: ["free", "pro"],
    price,
    context_tokens: 200000,
    max_output_tokens: 32000,
    routes: [{ upstream, ...more }],
  });
  const upstream = <P extends "chat" | "messages" | "responses">(protocol: P) => ({
    protocol,
    base_url: upstreamUrl,
    api_key: `upstream-canary-${protocol}`,
  });
  return {
    ...ownConfig(places),
    plans: { free: {}, pro: {} },
    upstreams: {
      "up-chat": upstream("chat"),
      "up-messages": upstream("messages"),
      "up-responses": upstream("responses"),
    },
    models: {
      "chat-1": model("up-chat"),
      "messages-1": model("up-messages"),
      "responses-1": model("up-responses"),
      "chat-alias": model("up-chat", { model: "chat-1-2026-08" }),
      "messages-alias": model("up-messages", { model: "messages-1-2026-08" }),
      "responses-alias": model("up-responses", { model: "responses-1-2026-08" }),
      "pro-only": { plans: ["pro"], price, context_tokens: 200000, routes: [{ upstream: "up-chat" }] },
      "other-family": model("up-chat"),
    },
    groups: {
      money: { kind: "pay_per_use", models: ["chat-*", "messages-*", "responses-*", "pro-only"] },
      "double-money": { kind: "pay_per_use", models: ["chat-*"], multiplier: "2.0" },
      "limited-money": {
        kind: "pay_per_use",
        models: ["chat-*", "messages-*", "responses-*"],
        limits: { requests_per_minute: 2, tokens_per_minute: 100000, concurrency: 2 },
      },
      cards: { kind: "time_card", models: ["chat-*", "messages-*", "responses-*"] },
    },
    cards: { day: { plan: "pro", group: "cards", lasts: "1d", quota: { spend: "5" } } },
  } satisfies ConfigFile;
}

type Section = Readonly<Record<string, unknown>>;

function isMap(value: unknown): value is Section {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function merged(config: unknown, change: unknown): unknown {
  if (!isMap(change)) return change;
  const result: Record<string, unknown> = isMap(config) ? { ...config } : {};
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) delete result[name];
    else result[name] = merged(result[name], value);
  }
  return result;
}

/** Sections that have a line for each entry. */
const BY_LINES = new Set(["upstreams", "models", "groups", "cards"]);

/** The text of a file, or of its beginning: a line for each setting, and for each upstream, model, group and card. */
export function yamlOf(config: Partial<ConfigFile>): string {
  const lines = Object.entries(config).flatMap(([name, value]) => {
    if (!BY_LINES.has(name) || !isMap(value)) return [`${name}: ${flow(value)}`];
    return [`${name}:`, ...Object.entries(value).map(([entry, members]) => `  ${scalar(entry)}: ${flow(members)}`)];
  });
  return `\n${lines.join("\n")}\n`;
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (!isMap(value)) return typeof value === "string" ? scalar(value) : JSON.stringify(value);
  const members = Object.entries(value).map(([name, member]) => `${scalar(name)}: ${flow(member)}`);
  return `{${members.join(", ")}}`;
}

/** Text that YAML cannot read as anything else needs no quotes. */
const PLAIN = /^(?!(?:true|false|null|yes|no|on|off|y|n)$)[A-Za-z][\w.-]*$|^\d+[a-z]+$|^[\d.]+:\d+$/;

function scalar(text: string): string {
  return PLAIN.test(text) ? text : JSON.stringify(text);
}
