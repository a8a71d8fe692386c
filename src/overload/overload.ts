/**
 * The overload manager: the pressure of this process, and who is refused at which point of a request's path. It first
 * collects the numbers. The decision itself is at the end of the file (`shedAt`) and depends on numbers alone.
 */
import { totalmem } from "node:os";
import process from "node:process";
import type { BodyRoom } from "../accept/body.ts";
import { type DescriptorShares, descriptorLimit, sharesOf } from "../accept/descriptors.ts";
import { FULL_RATIO } from "../settle/journal/open.ts";
import { PRESSURE_RATIO } from "../settle/journal/segments.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createVitalsMeter, type PressureLimits, pressureOf } from "../telemetry/pressure.ts";
import { TransientMap } from "../values/collections/transient.ts";
import { type Refusal, refusal } from "../values/errors.ts";
import type { AccountTag, KeyHash, WellFormedKey } from "../values/key.ts";
import type { Settings } from "../values/settings.ts";
import { afterTurn, type Clock } from "../values/time.ts";
import { BodyShares, bodyRoomBytes } from "./body-shares.ts";

/** Minimum of requests in flight that a process carries, even if its upstreams take fewer. */
const IN_FLIGHT_LEAST = 1_000;
/** Multiple of what its upstreams take at once: as many again may wait for an upstream or for their clients. */
const IN_FLIGHT_FACTOR = 2;

const NO_LOAD = { inFlight: 0, journal: 0 };

export interface Overload {
  /**
   * Whether a request may go on at this point. The account of a key is known only while the key has other requests
   * running.
   */
  at(point: "headers" | "body", key: WellFormedKey): Refusal | undefined;
  /**
   * Takes a request into flight: an admitted one, or a token count. @returns the function that removes it, or a
   * refusal.
   */
  enter(key: WellFormedKey): (() => void) | Refusal;
  /** Room for a request's body; held once the store has confirmed its account. */
  roomFor(tag: AccountTag): BodyRoom;
  /** Consulted by the listener for every connection and answer. */
  readonly connectionGuard: {
    /** How many connections the limit on file descriptors allows; undefined if the system does not report it. */
    readonly shares: DescriptorShares | undefined;
    refusesConnections(): boolean;
    closesConnections(): boolean;
    /** A connection has been refused, for lack of room or under pressure. */
    refused(): void;
  };
  /** Whether the process is about to run out of memory; some of it may be garbage that can be released. */
  isShortOfMemory(): boolean;
  /** Updates the gauge. */
  measure(): void;
  stop(): void;
}

type OverloadInputs = Pick<Settings, "overload" | "upstreams" | "workers" | "bodyBytesMax">;

interface OverloadParts {
  readonly settings: () => OverloadInputs;
  readonly journalFill: () => number;
  readonly clock: Clock;
  readonly metrics: Pick<Metrics, "pressure" | "shed">;
}

export function createOverload({ settings, journalFill, clock, metrics }: OverloadParts): Overload {
  const meter = createVitalsMeter(clock);
  const inFlight = new InFlight();
  const limit = descriptorLimit();
  const shares = limit === undefined ? undefined : sharesOf(limit);
  const memoryBytes = machineMemoryBytes();

  const limitsOf = ({ overload, upstreams, workers }: OverloadInputs): PressureLimits => ({
    inFlightMax: overload.inFlightMax ?? derivedInFlightMax([...upstreams.values()], shares?.upstreamMax),
    loopDelayMs: overload.loopDelayMs,
    memoryBytes: overload.memoryBytes ?? memoryBytes / workers,
  });
  let inForce = settings();
  let limits = limitsOf(inForce);
  // A request asks four times, and within one turn only the requests in flight change: 0.2 us for each time.
  const see = onceATurn(clock, () => {
    if (settings() !== inForce) {
      inForce = settings();
      limits = limitsOf(inForce);
    }
    return { vitals: meter.read(), journal: journalPressure(journalFill()) };
  });
  const loaded = () => {
    const { vitals, journal } = see();
    return pressureOf(vitals, { inFlight: inFlight.total, journal }, limits);
  };

  const decide = (point: Exclude<ShedPoint, "accept">, own: number): Refusal | undefined => {
    const nowLoaded = loaded();
    if (nowLoaded < THRESHOLDS[point].heavy) return undefined;
    const cause = shedAt(point, nowLoaded, own, inFlight.census);
    if (cause === undefined) return undefined;
    metrics.shed.inc({ point });
    return cause === "overloaded" ? refusal(cause) : refusal(cause, { detail: heavyDetail(own) });
  };

  const bodies = new BodyShares(
    () => {
      see();
      return bodyRoomBytes(limits.memoryBytes, inForce.bodyBytesMax);
    },
    () => metrics.shed.inc({ point: "room" }),
  );

  return {
    at: (point, key) => decide(point, inFlight.ofKey(key.hash)),
    enter: ({ tag, hash }) => decide("upstream", inFlight.of(tag)) ?? inFlight.enter(tag, hash),
    roomFor: (tag) => bodies.roomFor(tag),
    connectionGuard: {
      shares,
      // If only the number of requests is too high, each is refused in its protocol's format, the busiest accounts
      // first.
      refusesConnections: () => pressureOf(see().vitals, NO_LOAD, limits) >= REFUSE_CONNECTIONS_FROM,
      closesConnections: () => loaded() >= CLOSE_FROM,
      refused: () => metrics.shed.inc({ point: "accept" }),
    },
    isShortOfMemory() {
      const { rssBytes, heapRatio } = see().vitals;
      return Math.max(rssBytes / limits.memoryBytes, heapRatio) >= SHORT_OF_MEMORY_FROM;
    },
    measure: () => metrics.pressure.set(loaded()),
    stop: () => meter.stop(),
  };
}

/** Calls `take` once per turn of the event loop, and gives its result to every caller in that turn. */
function onceATurn<T>(clock: Clock, take: () => T): () => T {
  let taken: { readonly value: T } | undefined;
  return () => {
    if (taken) return taken.value;
    taken = { value: take() };
    afterTurn(clock, () => {
      taken = undefined;
    });
    return taken.value;
  };
}

/** The requests that a process carries at once if the operator sets no number. */
function derivedInFlightMax(
  upstreams: readonly { readonly maxConcurrency: number }[],
  upstreamMax = Number.POSITIVE_INFINITY,
): number {
  const taken = upstreams.reduce((sum, { maxConcurrency }) => sum + maxConcurrency, 0);
  return Math.min(Math.max(IN_FLIGHT_LEAST, taken * IN_FLIGHT_FACTOR), upstreamMax);
}

/**
 * Up to PRESSURE_RATIO, the journal keeps only history, which is dropped as needed. At FULL_RATIO, it accepts nothing
 * new.
 */
function journalPressure(fill: number): number {
  return Math.max(0, (fill - PRESSURE_RATIO) / (FULL_RATIO - PRESSURE_RATIO));
}

/** The memory of the container, or else of the machine. */
function machineMemoryBytes(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 && constrained < totalmem() ? constrained : totalmem();
}

function heavyDetail(own: number): string {
  return `This gateway is short of resources, and your account has ${own} requests running, the largest part of the load.`;
}

/* The requests of this process whose bodies are being worked on, by account. Shedding decides by these numbers. */

interface AccountLoad {
  count: number;
}

interface KeyLoad {
  readonly account: AccountLoad;
  count: number;
}

/**
 * Counts requests in flight. A key's account is known only while the key has requests running, that is, after the store
 * has confirmed it. So a forged key with another account's tag learns nothing, and does not count against that account.
 */
export class InFlight {
  readonly #byAccount = new TransientMap<AccountTag, AccountLoad>();
  readonly #byKey = new TransientMap<KeyHash, KeyLoad>();
  /** How many accounts have each number of requests, so that the maximum is known without a walk. */
  readonly #accountsByCount: number[] = [];
  #total = 0;
  #most = 0;

  get census(): Census {
    return { total: this.#total, accounts: this.#byAccount.size, most: this.#most };
  }

  get total(): number {
    return this.#total;
  }

  of(tag: AccountTag): number {
    return this.#byAccount.get(tag)?.count ?? 0;
  }

  /** Requests of the account that a key belongs to; 0 if the key has no running request. */
  ofKey(hash: KeyHash): number {
    return this.#byKey.get(hash)?.account.count ?? 0;
  }

  /** Adds a request. @returns the function that removes it; further calls have no effect. */
  enter(tag: AccountTag, hash: KeyHash): () => void {
    const load = this.#byKey.get(hash) ?? this.#comes(tag, hash);
    load.count += 1;
    this.#move(load.account, 1);
    let inside = true;
    return () => {
      if (!inside) return;
      inside = false;
      load.count -= 1;
      if (load.count === 0) this.#byKey.delete(hash);
      this.#move(load.account, -1);
      if (load.account.count === 0) this.#byAccount.delete(tag);
    };
  }

  /** The first running request of a key. */
  #comes(tag: AccountTag, hash: KeyHash): KeyLoad {
    const known = this.#byAccount.get(tag);
    const account = known ?? { count: 0 };
    if (!known) this.#byAccount.set(tag, account);
    const load = { account, count: 0 };
    this.#byKey.set(hash, load);
    return load;
  }

  #move(account: AccountLoad, by: 1 | -1): void {
    const before = account.count;
    const now = before + by;
    this.#total += by;
    account.count = now;
    this.#rank(before, -1);
    this.#rank(now, 1);
    // A count changes by one, so the maximum does, too.
    if (now > this.#most) this.#most = now;
    else if (before === this.#most && this.#accountsByCount[before] === 0) this.#most = now;
  }

  #rank(count: number, by: 1 | -1): void {
    if (count === 0) return;
    this.#accountsByCount[count] = (this.#accountsByCount[count] ?? 0) + by;
  }
}

/*
 * Decides from numbers alone who is refused while the process is short of something (ARCHITECTURE.md promise 10).
 * First, the accounts with most of the running requests get 429: the flood of one client must neither cost the others
 * their answers nor show the front a 5xx. Everybody gets 503 only if there is no such account, or if the process is
 * still full.
 */

/** Points on its path at which a request can be refused; each costs more than the one before. */
const SHED_POINTS = ["accept", "headers", "body", "upstream"] as const;
type ShedPoint = (typeof SHED_POINTS)[number];

/** Pressure from which answers close their connections, so that the front distributes its next requests again. */
const CLOSE_FROM = 0.9;
/** Pressure of the event loop and memory from which new connections are answered 503 and closed. */
const REFUSE_CONNECTIONS_FROM = 1;

/**
 * Share of the memory or the heap from which the process tries to release memory; below the point at which all are
 * refused.
 */
const SHORT_OF_MEMORY_FROM = 0.9;

interface Threshold {
  /** From here on, the accounts with most of the requests get 429. */
  readonly heavy: number;
  /** From here on, everybody gets 503; while there is a heavy account, only at 1. */
  readonly all: number;
}

/** The further a request has come, the more it has cost already, so it is refused at a higher pressure. */
const THRESHOLDS: Readonly<Record<Exclude<ShedPoint, "accept">, Threshold>> = {
  headers: { heavy: 0.8, all: 0.95 },
  body: { heavy: 0.85, all: 0.97 },
  upstream: { heavy: 0.9, all: 1 },
};

/** Below this many requests in flight, no account counts as heavy. */
const HEAVY_MIN = 8;
/** Multiple of its equal share that an account may have. */
const HEAVY_FACTOR = 2;

/** Requests in flight in this process, without the one that is being decided. */
interface Census {
  /** Requests of all accounts. */
  readonly total: number;
  /** Accounts that have any. */
  readonly accounts: number;
  /** Requests of the account that has the most. */
  readonly most: number;
}

/**
 * Whether an account with this many requests has an outsized part of what runs: half of it, or twice an equal share.
 */
export function isHeavy(own: number, { total, accounts }: Census): boolean {
  if (own < HEAVY_MIN) return false;
  return own * 2 > total || own * accounts > total * HEAVY_FACTOR;
}

/**
 * Decides one request.
 * @param own requests in flight of its account; 0 if the account is not known.
 * @returns the cause of its refusal, or undefined if it may go on.
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
