/**
 * Recent answers of the store about keys. They cost the store nothing in two cases: a key that was just refused is not
 * looked up again, and neither is a key above its requests per minute that sends a flood. A key that was good recently
 * is still looked up with each request, as ARCHITECTURE.md promise 4 demands. It only does not compete for the lookups
 * that an address with many bad keys has left (failed-keys.ts of accept).
 */
import type { AdmitRefused, BucketState } from "../store/admission.ts";
import { createRecent } from "../values/collections/recent.ts";
import type { Refusal } from "../values/errors.ts";
import type { KeyHash } from "../values/key.ts";
import type { Clock } from "../values/time.ts";

type BadKey = Extract<Refusal["cause"], "unknown_key" | "revoked_key">;

/** How long a refusal is remembered: a key created in between is refused for at most this long. */
const BAD_TTL_MS = 1_000;
/** How often the store is asked about a flooding key above its requests per minute. */
const LIMITED_WINDOW_MS = 250;
/**
 * This many refusals in one window are a flood: a client that ignores `retry-after`. Below it the store is asked each
 * time, so that a key whose group or limits were changed works with its next request (promise 4).
 */
const LIMITED_FLOOD = 20;
/** Reading a body of this size costs as much as refusing a small request: twenty of them are one body of 640 KiB. */
const LIMITED_BYTES = 32 * 1024;
/** Refused keys remembered at once; a larger flood costs the store, never memory. */
const BAD_KEYS_MAX = 10_000;
/** Good keys remembered at once, some 150 bytes each; those seen least recently are evicted first. */
const GOOD_KEYS_MAX = 50_000;

/** A key above its requests per minute. */
interface LimitedKey {
  /** The store's last answer, and when it was given. */
  refused: AdmitRefused;
  askedAtMs: number;
  /** Start of the quarter of a second in which refusals are counted. */
  readonly windowAtMs: number;
  /** Refusals in this window, from the store and from memory; one with a large body counts as many. */
  refusals: number;
  isFlood: boolean;
}

export interface SeenKeys {
  /** Why the store refused a key within the last second. */
  bad(hash: KeyHash): BadKey | undefined;
  /** Whether the key was good when the store was last asked, as far as this is remembered. */
  wasGood(hash: KeyHash): boolean;
  /** The refusal of a key that floods and is known to be above its requests per minute, with the remaining wait. */
  limited(hash: KeyHash): AdmitRefused | undefined;
  noteBad(hash: KeyHash, cause: BadKey): void;
  /**
   * Records a refusal by requests per minute. Others depend on the request and are ignored.
   * @param bodyBytes size of the body that had to be read before the refusal.
   */
  noteLimited(hash: KeyHash, refused: AdmitRefused, bodyBytes: number): void;
  noteGood(hash: KeyHash): void;
}

/** Remembers nothing: each key is looked up. */
export const NO_SEEN_KEYS: SeenKeys = {
  bad: () => undefined,
  wasGood: () => false,
  limited: () => undefined,
  noteBad: () => {},
  noteLimited: () => {},
  noteGood: () => {},
};

/** Bounded memory. Bad and good keys are kept apart, so a flood of bad keys evicts no good ones. */
export function createSeenKeys(clock: Pick<Clock, "monotonicMs">, goodMax = GOOD_KEYS_MAX): SeenKeys {
  const bad = createRecent<BadKey>({ max: BAD_KEYS_MAX, ttlMs: BAD_TTL_MS, clock });
  const good = createRecent<true>({ max: goodMax, clock });
  const limited = createRecent<LimitedKey>({ max: BAD_KEYS_MAX, ttlMs: 2 * LIMITED_WINDOW_MS, clock });
  return {
    bad: (hash) => bad.get(hash),
    wasGood: (hash) => good.has(hash),
    limited(hash) {
      const known = limited.get(hash);
      const nowMs = clock.monotonicMs();
      if (!known?.isFlood || nowMs - known.windowAtMs >= LIMITED_WINDOW_MS) return undefined;
      known.refusals++;
      return waitedFor(known, nowMs);
    },
    noteBad(hash, cause) {
      good.delete(hash);
      bad.set(hash, cause);
    },
    noteLimited(hash, refused, bodyBytes) {
      if (refused.cause !== "requests") return;
      const refusals = 1 + Math.floor(bodyBytes / LIMITED_BYTES);
      const known = limited.get(hash);
      const nowMs = clock.monotonicMs();
      const windowsAgo = known ? Math.floor((nowMs - known.windowAtMs) / LIMITED_WINDOW_MS) : 2;
      if (!known || windowsAgo > 0) {
        const goesOn = known !== undefined && windowsAgo === 1 && known.refusals >= LIMITED_FLOOD;
        const isFlood = goesOn || refusals >= LIMITED_FLOOD;
        limited.set(hash, { refused, askedAtMs: nowMs, windowAtMs: nowMs, refusals, isFlood });
        return;
      }
      known.refused = refused;
      known.askedAtMs = nowMs;
      known.refusals += refusals;
      known.isFlood ||= known.refusals >= LIMITED_FLOOD;
    },
    noteGood: (hash) => void good.set(hash, true),
  };
}

/** The refusal as the store would give it now; undefined if the key may send a request again. */
function waitedFor({ refused, askedAtMs }: LimitedKey, nowMs: number): AdmitRefused | undefined {
  const waitedMs = nowMs - askedAtMs;
  const retryAfterMs = (refused.retryAfterMs ?? 0) - waitedMs;
  if (retryAfterMs <= 0) return undefined;
  const now = (state: BucketState | undefined) =>
    state && { ...state, resetMs: Math.max(0, Math.round(state.resetMs - waitedMs)) };
  const { requests, tokens } = refused.limits;
  return { ...refused, retryAfterMs, limits: { requests: now(requests), tokens: now(tokens) } };
}
