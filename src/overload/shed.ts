/**
 * Decides who is refused while the process is short of something, decided from numbers alone (ARCHITECTURE.md promise
 * 10). First the accounts that have most of what runs, with 429: one client's flood must neither cost the others their
 * answers nor show the front a 5xx. Only where there is no such account, or the process is still full, everybody with
 * 503.
 */

/** Where on its path a request can be turned away; each one costs more than the one before. */
const SHED_POINTS = ["accept", "headers", "body", "upstream"] as const;
export type ShedPoint = (typeof SHED_POINTS)[number];

/** Pressure from which on answers close their connections, so that the front spreads its next requests anew. */
export const CLOSE_FROM = 0.9;
/** Pressure of the process itself, its loop and memory, from which on new connections are answered 503 and closed. */
export const REFUSE_CONNECTIONS_FROM = 1;

interface Threshold {
  /** From here on the accounts with most of the requests get 429. */
  readonly heavy: number;
  /** From here on everybody gets 503; while there is a heavy account, only at 1. */
  readonly all: number;
}

/** The further a request has come, the more it has cost already, so the higher the pressure at which it is refused. */
const THRESHOLDS: Readonly<Record<Exclude<ShedPoint, "accept">, Threshold>> = {
  headers: { heavy: 0.8, all: 0.95 },
  body: { heavy: 0.85, all: 0.97 },
  upstream: { heavy: 0.9, all: 1 },
};

/** Below this many requests in flight no account is blamed. */
const HEAVY_MIN = 8;
/** Times its equal share that an account may have. */
const HEAVY_FACTOR = 2;

/** What is in flight in this process, without the request that is decided. */
export interface Census {
  /** Requests of all accounts. */
  readonly total: number;
  /** Accounts that have any. */
  readonly accounts: number;
  /** Requests of the account that has most. */
  readonly most: number;
}

/** Whether an account with so many requests has an outsized part of what runs: half of it, or twice an equal share. */
export function isHeavy(own: number, { total, accounts }: Census): boolean {
  if (own < HEAVY_MIN) return false;
  return own * 2 > total || own * accounts > total * HEAVY_FACTOR;
}

/**
 * Decides one request.
 * @param own requests in flight of its account; 0 while the account is not known.
 * @returns the cause of its refusal, or undefined when it may go on.
 */
export function shedAt(
  point: Exclude<ShedPoint, "accept">,
  pressure: number,
  own: number,
  census: Census,
): "concurrency" | "overloaded" | undefined {
  const { heavy, all } = THRESHOLDS[point];
  if (pressure < heavy) return undefined;
  if (isHeavy(own, census)) return "concurrency";
  const everybody = isHeavy(census.most, census) ? 1 : all;
  return pressure >= everybody ? "overloaded" : undefined;
}
