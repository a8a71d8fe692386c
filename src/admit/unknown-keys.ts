/** Keys found unknown within the last second: the door of the node-cache family for this stage. */
import { NodeCache } from "@cacheable/node-cache";
import type { KeyHash } from "../values/key.ts";

/** How long an unknown key stays so: a key created in between is refused for this long at most. */
const UNKNOWN_TTL_S = 1;
/** Unknown keys remembered at once; a flood beyond it costs the store, never memory. */
const UNKNOWN_KEYS_MAX = 10_000;

export interface UnknownKeys {
  has(hash: KeyHash): boolean;
  add(hash: KeyHash): void;
  close(): void;
}

/** A bounded memory of unknown keys, apart from every other cache so that a flood pushes out nothing else. */
export function createUnknownKeys(): UnknownKeys {
  const cache = new NodeCache<true>({
    stdTTL: UNKNOWN_TTL_S,
    useClones: false,
    maxKeys: UNKNOWN_KEYS_MAX,
    checkperiod: 1,
  });
  return {
    has: (hash) => cache.has(hash),
    add(hash) {
      if (cache.getStats().keys < UNKNOWN_KEYS_MAX) cache.set(hash, true);
    },
    close: () => cache.close(),
  };
}
