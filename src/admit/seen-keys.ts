/**
 * What the store lately answered about keys. A key that it refused just now is not asked about again, and neither is one above
 * its requests per minute that a flood of requests comes with: that costs the store nothing. One that was good
 * lately is asked about with each request, as ARCHITECTURE.md promise 4 demands, and only need not share the look-ups
 * that an address full of bad keys has left (failed-keys.ts of accept).
 */
import type { AdmitRefused, BucketState } from "../store/admission.ts";
import { createRecent } from "../values/collections/recent.ts";
import type { Refusal } from "../values/errors.ts";
import type { KeyHash } from "../values/key.ts";
import type { Clock } from "../values/time.ts";

type BadKey = Extract<Refusal["cause"], "unknown_key" | "revoked_key">;

/** How long a refused key stays so: a key created in between is refused for this long at most. */
const BAD_TTL_MS = 1_000;
/** How often the store is asked about a key above its requests per minute that a flood comes with. */
const LIMITED_WINDOW_MS = 250;
/**
 * Refusals in such a time that are a flood: a client that is told to wait and does not. Below it the store is asked each time, so
 * that a key whose group or limits were changed works with its next request (promise 4).
 */
const LIMITED_FLOOD = 20;
/** A body of this size costs as much until it is refused as a whole small request: twenty of them are one body of 640 KiB. */
const LIMITED_BYTES = 32 * 1024;
/** Refused keys remembered at once; a flood beyond it costs the store, never memory. */
const BAD_KEYS_MAX = 10_000;
/** Good keys remembered at once, those seen least recently forgotten first: some 150 bytes each. */
const GOOD_KEYS_MAX = 50_000;

/** A key above its requests per minute. */
interface LimitedKey {
  /** What the store said last, and when. */
  refused: AdmitRefused;
  askedAtMs: number;
  /** When the quarter of a second began in which its refusals are counted. */
  readonly windowAtMs: number;
  /** Refusals since that began, the store's and those that it was not asked for; one of a large body is many. */
  refusals: number;
  isFlood: boolean;
}

export interface SeenKeys {
  /** Why the store refused a key within the last second. */
  bad(hash: KeyHash): BadKey | undefined;
  /** Whether the key was good when the store was last asked about it, as far as that is remembered. */
  wasGood(hash: KeyHash): boolean;
  /** The refusal of a key that comes in a flood and is known to be above its requests per minute, with what is left to wait. */
  limited(hash: KeyHash): AdmitRefused | undefined;
  noteBad(hash: KeyHash, cause: BadKey): void;
  /**
   * Takes a refusal by requests per minute; others depend on the request, and are not taken.
   * @param bodyBytes what had to be read first
   */
  noteLimited(hash: KeyHash, refused: AdmitRefused, bodyBytes: number): void;
  noteGood(hash: KeyHash): void;
}

/** Remembers nothing: each key is asked about. */
export const FORGETFUL: SeenKeys = {
  bad: () => undefined,
  wasGood: () => false,
  limited: () => undefined,
  noteBad: () => {},
  noteLimited: () => {},
  noteGood: () => {},
};

/** A bounded memory; bad keys apart from good ones, so that a flood of the former pushes out none of the latter. */
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

/** The refusal as the store would give it now; undefined when the key may have a request again. */
function waitedFor({ refused, askedAtMs }: LimitedKey, nowMs: number): AdmitRefused | undefined {
  const waitedMs = nowMs - askedAtMs;
  const retryAfterMs = (refused.retryAfterMs ?? 0) - waitedMs;
  if (retryAfterMs <= 0) return undefined;
  const now = (state: BucketState | undefined) =>
    state && { ...state, resetMs: Math.max(0, Math.round(state.resetMs - waitedMs)) };
  const { requests, tokens } = refused.limits;
  return { ...refused, retryAfterMs, limits: { requests: now(requests), tokens: now(tokens) } };
}
