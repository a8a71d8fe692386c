/**
 * What the store lately answered about keys. A key that it refused just now is not asked about again. One that was good
 * lately is asked about with each request, as ARCHITECTURE.md promise 4 demands, and only need not share the look-ups
 * that an address full of bad keys has left (failed-keys.ts of accept).
 */
import type { Refusal } from "../values/errors.ts";
import type { KeyHash } from "../values/key.ts";
import { createRecent } from "../values/recent.ts";
import type { Clock } from "../values/time.ts";

type BadKey = Extract<Refusal["cause"], "unknown_key" | "revoked_key">;

/** How long a refused key stays so: a key created in between is refused for this long at most. */
const BAD_TTL_MS = 1_000;
/** Refused keys remembered at once; a flood beyond it costs the store, never memory. */
const BAD_KEYS_MAX = 10_000;
/** Good keys remembered at once, those seen least recently forgotten first: some 150 bytes each. */
const GOOD_KEYS_MAX = 50_000;

export interface SeenKeys {
  /** Why the store refused a key within the last second. */
  bad(hash: KeyHash): BadKey | undefined;
  /** Whether the key was good when the store was last asked about it, as far as that is remembered. */
  wasGood(hash: KeyHash): boolean;
  noteBad(hash: KeyHash, cause: BadKey): void;
  noteGood(hash: KeyHash): void;
}

/** Remembers nothing: each key is asked about. */
export const FORGETFUL: SeenKeys = {
  bad: () => undefined,
  wasGood: () => false,
  noteBad: () => {},
  noteGood: () => {},
};

/** A bounded memory; bad keys apart from good ones, so that a flood of the former pushes out none of the latter. */
export function createSeenKeys(clock: Pick<Clock, "monotonicMs">, goodMax = GOOD_KEYS_MAX): SeenKeys {
  const bad = createRecent<BadKey>({ max: BAD_KEYS_MAX, ttlMs: BAD_TTL_MS, clock });
  const good = createRecent<true>({ max: goodMax, clock });
  return {
    bad: (hash) => bad.get(hash),
    wasGood: (hash) => good.has(hash),
    noteBad(hash, cause) {
      good.delete(hash);
      bad.set(hash, cause);
    },
    noteGood: (hash) => void good.set(hash, true),
  };
}
