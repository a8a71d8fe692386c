/**
 * Settings as bytes, for another thread or process of the same build. V8 serializes plain objects, lists, maps, sets
 * and bigints, and keeps what is shared; of a class it keeps neither the prototype nor private members, so that a
 * `Secret` would arrive without its text.
 */
import { deserialize, serialize } from "node:v8";
import { Secret } from "../../values/secret.ts";
import type { Settings } from "../../values/settings.ts";

type SettingsPart = Map<unknown, unknown> | Record<PropertyKey, unknown>;

/** Where a secret belongs. `owner` is a part of the settings: a copy of both refers to the copy of that part. */
interface SecretPlace {
  readonly owner: SettingsPart;
  readonly key: unknown;
  readonly text: string;
}

interface Packed {
  readonly settings: Settings;
  readonly secrets: readonly SecretPlace[];
}

/**
 * Serializes settings that nobody else uses: their secrets are taken out, and the settings are unusable afterwards.
 * @returns bytes with the secrets in the clear, only for this gateway's own threads and processes.
 * @throws if they have a value that would not arrive as it is.
 */
export function packSettings(settings: Settings): Uint8Array<ArrayBuffer> {
  const secrets: SecretPlace[] = [];
  const seen = new Set<unknown>();
  const walk = (value: unknown): void => {
    if (typeof value === "function" || typeof value === "symbol") throw new Error(`settings hold a ${typeof value}`);
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    if (!KINDS.has(Object.getPrototypeOf(value))) throw new Error("settings hold an object of a class");
    const owner = value as SettingsPart;
    const members: Iterable<[unknown, unknown]> = value instanceof Map ? value : Object.entries(value);
    if (value instanceof Set) for (const member of value) walk(member);
    else
      for (const [key, member] of members) {
        if (!(member instanceof Secret)) walk(member);
        else {
          secrets.push({ owner, key, text: member.reveal() });
          place(owner, key, undefined);
        }
      }
  };
  walk(settings);
  return new Uint8Array(serialize({ settings, secrets } satisfies Packed));
}

/** The prototypes of values that V8 copies as they are. */
const KINDS: ReadonlySet<unknown> = new Set([Object, Array, Map, Set].map((kind) => kind.prototype));

/** Settings that `packSettings` has serialized. */
export function unpackSettings(bytes: Uint8Array): Settings {
  const { settings, secrets } = deserialize(bytes) as Packed;
  for (const { owner, key, text } of secrets) place(owner, key, new Secret(text));
  return settings;
}

function place(owner: SettingsPart, key: unknown, value: unknown): void {
  if (owner instanceof Map) owner.set(key, value);
  else owner[key as string] = value;
}
