/**
 * Keeps requests from waiting for a store that is away or slow. Each of its servers has a breaker; the calls that wait for
 * a server have a maximum: requests beyond it are refused, settlements queue. What is refused here was never sent, so nobody has
 * to take it back (docs/failure-model.md rows B3, B4 and B7).
 */

import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { AccountTag, KeyHash } from "../../values/key.ts";
import type { RequestId } from "../../values/request-id.ts";
import { type Clock, ownDelayMs } from "../../values/time.ts";
import type { AdmitAsk } from "../admission.ts";
import { type RequestStore, StoreError } from "../contract.ts";

/** Requests that wait for one server: at 200 ms an answer, 2,500 a second still pass. */
const WAITING_MAX = 512;
/** Settlements under way to one server that nobody waits for; what gathered in an outage goes out no faster. */
const SETTLEMENTS_MAX = 64;
/**
 * Those behind which clients get their ends; further ones stand in the line of the others. Redis takes some 150 us for one: where
 * a drain or the death of an upstream ends thousands of streams in one turn, the last of them would be given up as unanswered, and
 * open the breaker.
 */
const AWAITED_MAX = 512;
/** Servers that are counted apart: as many as a Redis Cluster can have. Further ones share a breaker. */
const SHARDS_MAX = 1_000;
/** Not ready after this long. */
const UNREADY_AFTER_MS = 5_000;

interface BreakerPoolParts {
  /** Asked whether it is back, and which server has an account. */
  readonly store: Pick<RequestStore, "admit" | "shardOf">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: Pick<Metrics, "storeBreakerOpen">;
  readonly log: Log;
}

interface Shard {
  readonly breaker: Breaker;
  waiting: number;
  settling: number;
  awaited: number;
  /** Queued settlements, oldest first. */
  readonly queue: (() => void)[];
  /** The account whose call was answered last: a probe for it reaches the same server. */
  lastTag: AccountTag;
}

/** The breakers of all servers of a store. */
export class Breakers {
  readonly #parts: BreakerPoolParts;
  readonly #shards = new Map<string, Shard>();

  constructor(parts: BreakerPoolParts) {
    this.#parts = parts;
    parts.metrics.storeBreakerOpen.set(0);
  }

  /** A call that a request waits for. Rejects with an `unsent` StoreError where the breaker is open or too many wait. */
  request<T>(tag: AccountTag, call: () => Promise<T>): Promise<T> {
    const shard = this.#shardOf(tag);
    if (shard.waiting >= WAITING_MAX) return Promise.reject(unsent("too many requests wait for the store"));
    shard.waiting++;
    return this.#counted(shard, tag, call, requestEnded);
  }

  /**
   * A settlement. Rejects with an `unsent` StoreError where the breaker is open.
   * @param isAwaited it waits for none of those that nobody waits for, as its client asks again once it has its end
   * (ARCHITECTURE.md promise 5): some hundreds of requests may end in one turn.
   */
  settlement<T>(tag: AccountTag, call: () => Promise<T>, isAwaited: boolean): Promise<T> {
    const shard = this.#shardOf(tag);
    if (isAwaited && shard.awaited < AWAITED_MAX) {
      shard.awaited++;
      return this.#counted(shard, tag, call, awaitedEnded);
    }
    if (shard.settling >= SETTLEMENTS_MAX) {
      const turn = new Promise<void>((resolve) => shard.queue.push(resolve));
      return turn.then(() => this.#counted(shard, tag, call, settlementEnded));
    }
    shard.settling++;
    return this.#counted(shard, tag, call, settlementEnded);
  }

  /** Why the gateway is not ready: the breakers of all servers have been open for long. Empty while one is closed. */
  reasons(): string[] {
    const all = [...this.#shards.values()];
    const away = all.length > 0 && all.every(({ breaker }) => breaker.openMs >= UNREADY_AFTER_MS);
    return away ? ["the store does not answer in time: its breaker is open"] : [];
  }

  stop(): void {
    for (const { breaker } of this.#shards.values()) breaker.stop();
  }

  #shardOf(tag: AccountTag): Shard {
    const { store, clock, random } = this.#parts;
    const name = store.shardOf(tag);
    const known = this.#shards.get(name);
    if (known) return known;
    const [first] = this.#shards.values();
    if (first && this.#shards.size >= SHARDS_MAX) return first;
    const breaker = new Breaker({
      clock,
      random,
      probe: () => store.admit(probeOf(made.lastTag)),
      onChange: (open) => this.#changed(name, open),
    });
    const made: Shard = { breaker, waiting: 0, settling: 0, awaited: 0, queue: [], lastTag: tag };
    this.#shards.set(name, made);
    return made;
  }

  #changed(server: string, open: boolean): void {
    const { metrics, log } = this.#parts;
    const anyOpen = [...this.#shards.values()].some(({ breaker }) => breaker.isOpen);
    metrics.storeBreakerOpen.set(anyOpen ? 1 : 0);
    if (open) log.warn({ server }, "the store does not answer in time; new requests are refused until it does");
    else log.info({ server }, "the store answers in time again");
  }

  /** Sends a call unless the breaker is open, counts what became of it, and lets its place go in either case. */
  async #counted<T>(shard: Shard, tag: AccountTag, call: () => Promise<T>, ended: (shard: Shard) => void): Promise<T> {
    const { clock } = this.#parts;
    let failed = false;
    let tookMs: (() => number) | undefined;
    try {
      if (shard.breaker.isOpen) throw unsent("the store does not answer in time");
      tookMs = stopwatch(clock);
      const answer = await call();
      shard.lastTag = tag;
      return answer;
    } catch (error) {
      failed = isOutage(error);
      throw error;
    } finally {
      ended(shard);
      if (tookMs) shard.breaker.count(failed, tookMs());
    }
  }
}

function requestEnded(shard: Shard): void {
  shard.waiting--;
}

function awaitedEnded(shard: Shard): void {
  shard.awaited--;
}

/** The place goes to the next in the queue, or is free. */
function settlementEnded(shard: Shard): void {
  const next = shard.queue.shift();
  if (next) next();
  else shard.settling--;
}

/**
 * An admission for a key that nobody has: refused without a trace, but by a script that writes, so that a store that
 * answers and cannot write (out of memory, no disk, no replicas) does not pass for one that works.
 */
function probeOf(tag: AccountTag): AdmitAsk {
  return {
    requestId: "0".repeat(32) as RequestId,
    tag,
    keyHash: "0".repeat(64) as KeyHash,
    model: "",
    address: "",
    plans: [],
    groups: [],
    inputTokens: 0,
    holdTtlMs: 1,
    again: false,
  };
}

/**
 * Starts to time a server. @returns what tells the milliseconds so far, without those that this process was late itself: a gateway
 * without a core would else take its own state for the store's, and refuse all that it could still serve.
 */
function stopwatch(clock: Clock): () => number {
  const startedMs = clock.monotonicMs();
  const ownMs = ownDelayMs(clock);
  return () => clock.monotonicMs() - startedMs - (ownDelayMs(clock) - ownMs);
}

function isOutage(error: unknown): boolean {
  return error instanceof StoreError && error.kind === "unavailable" && error.outcome === "unknown";
}

function unsent(message: string): StoreError {
  return new StoreError("unavailable", message, { outcome: "unsent" });
}

/** @returns a promise that ends as `work` does, or rejects as a store that is away does after `limitMs`. */
export async function inTime(clock: Clock, limitMs: number, work: Promise<void>): Promise<void> {
  let cancel = () => {};
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(limitMs, () => reject(unsent("the account's last charge waits for the store")));
  });
  try {
    await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

/*
 * A circuit breaker for one server of the store. Closed: calls go through and their outcomes are counted. Open, after too
 * many failures or slow answers: calls are refused at once, and a probe of our own is sent after a pause that grows with
 * jitter. The probe's answer closes it; requests never have to try whether the store is back (docs/failure-model.md
 * invariant 28, rows B3 and B4).
 */

/** This many failures in a row open it; each took up to half a second, so more requests than these are waiting by then. */
const FAILURES_IN_A_ROW = 5;
/** An answer that took so long came at the second try: Redis is given 400 ms for the first. */
const SLOW_MS = 400;
/** Of the last WINDOW calls, this share failed or slow opens it, for a store that answers every other time. */
const BAD_SHARE = 0.5;
const WINDOW = 20;
/** Calls further apart than this say nothing about one another. */
const QUIET_MS = 10_000;
const PAUSE_FIRST_MS = 250;
const PAUSE_MAX_MS = 2_000;

interface BreakerParts {
  readonly clock: Clock;
  /** Between 0 and 1, so that replicas do not come back in step. */
  readonly random: () => number;
  /** Asks the store something that it can only answer when it works. */
  readonly probe: () => Promise<unknown>;
  /** Called when it opens and when it closes. */
  readonly onChange: (open: boolean) => void;
}

export class Breaker {
  readonly #parts: BreakerParts;
  /** Outcomes of the last calls, oldest overwritten first; true is bad. */
  readonly #window: boolean[] = [];
  /** Of them, how many are bad. */
  #bad = 0;
  #next = 0;
  #failures = 0;
  #lastMs = 0;
  #openSinceMs: number | undefined;
  #pauseMs = PAUSE_FIRST_MS;
  #cancel = () => {};

  constructor(parts: BreakerParts) {
    this.#parts = parts;
  }

  get isOpen(): boolean {
    return this.#openSinceMs !== undefined;
  }

  /** How long it has been open, milliseconds; 0 while it is closed. */
  get openMs(): number {
    return this.#openSinceMs === undefined ? 0 : this.#parts.clock.monotonicMs() - this.#openSinceMs;
  }

  /**
   * Counts a call that has ended. One that was sent before the breaker opened counts for nothing afterwards.
   * @param tookMs what the store took, without what this process was late itself.
   */
  count(failed: boolean, tookMs: number): void {
    if (this.isOpen) return;
    const nowMs = this.#parts.clock.monotonicMs();
    if (nowMs - this.#lastMs > QUIET_MS) this.#forget();
    this.#lastMs = nowMs;
    this.#failures = failed ? this.#failures + 1 : 0;
    const isBad = failed || tookMs >= SLOW_MS;
    if (this.#window[this.#next]) this.#bad--;
    if (isBad) this.#bad++;
    this.#window[this.#next] = isBad;
    this.#next = (this.#next + 1) % WINDOW;
    const mostlyBad = this.#window.length === WINDOW && this.#bad >= WINDOW * BAD_SHARE;
    if (this.#failures >= FAILURES_IN_A_ROW || mostlyBad) this.#open(nowMs);
  }

  /** Ends the probing; safe to call twice. */
  stop(): void {
    this.#cancel();
    this.#cancel = () => {};
  }

  #open(nowMs: number): void {
    this.#openSinceMs = nowMs;
    this.#pauseMs = PAUSE_FIRST_MS;
    this.#parts.onChange(true);
    this.#probeLater();
  }

  #probeLater(): void {
    const pauseMs = this.#pauseMs * (0.5 + this.#parts.random() / 2);
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
    this.#cancel = this.#parts.clock.after(pauseMs, () => void this.#halfOpen());
  }

  /** One call at a time tests whether the store is back; a slow answer does not count. */
  async #halfOpen(): Promise<void> {
    const { clock, probe, onChange } = this.#parts;
    const tookMs = stopwatch(clock);
    const answered = await probe().then(
      () => true,
      // An account that is broken, if the last call was for such a one.
      (error: unknown) => error instanceof StoreError && error.outcome === "refused",
    );
    if (!answered || tookMs() >= SLOW_MS) return this.#probeLater();
    this.#openSinceMs = undefined;
    this.#forget();
    onChange(false);
  }

  #forget(): void {
    this.#window.length = 0;
    this.#bad = 0;
    this.#next = 0;
    this.#failures = 0;
  }
}
