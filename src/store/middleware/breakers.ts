/**
 * Keeps requests from waiting for a store that is unavailable or slow. Each server of the store has a breaker, and the
 * number of calls that wait for a server is limited: requests beyond the limit are refused, settlements queue. What is
 * refused here was never sent, so nothing has to be undone (docs/failure-model.md rows B3, B4 and B7).
 */

import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { AccountTag, KeyHash } from "../../values/key.ts";
import type { RequestId } from "../../values/request-id.ts";
import { type Clock, ownDelayMs } from "../../values/time.ts";
import type { AdmitAsk } from "../admission.ts";
import { type RequestStore, StoreError } from "../contract.ts";

/** Requests that wait for one server at most. At 200 ms per answer, 2,500 a second still pass. */
const WAITING_MAX = 512;
/** Settlements in progress to one server for which no client waits. A backlog from an outage is sent no faster. */
const SETTLEMENTS_MAX = 64;
/**
 * Settlements after which clients get the end of their answer. Beyond this number they queue with the others. Redis
 * takes about 150 us for one. When a drain or the death of an upstream ends thousands of streams in one turn of the
 * event loop, the last of them would otherwise be given up as unanswered and open the breaker.
 */
const AWAITED_MAX = 512;
/** Servers that are counted separately: as many as a Redis Cluster can have. Further servers share a breaker. */
const SHARDS_MAX = 1_000;
/** The gateway is not ready after this long. */
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

  /**
   * A call that a request waits for. Rejects with an `unsent` StoreError when the breaker is open or too many calls
   * wait.
   */
  request<T>(tag: AccountTag, call: () => Promise<T>): Promise<T> {
    const shard = this.#shardOf(tag);
    if (shard.waiting >= WAITING_MAX) return Promise.reject(unsent("too many requests wait for the store"));
    shard.waiting++;
    return this.#counted(shard, tag, call, requestEnded);
  }

  /**
   * A settlement. Rejects with an `unsent` StoreError when the breaker is open.
   * @param isAwaited the client sends its next request as soon as it has the end of its answer (ARCHITECTURE.md promise
   * 5), so this settlement does not queue behind those for which no client waits. Some hundreds of requests may end in
   * one turn.
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

  /** Why the gateway is not ready: the breakers of all servers have been open too long. Empty while one is closed. */
  reasons(): string[] {
    const all = [...this.#shards.values()];
    const unavailable = all.length > 0 && all.every(({ breaker }) => breaker.openMs >= UNREADY_AFTER_MS);
    return unavailable ? ["the store does not answer in time: its breaker is open"] : [];
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

  /** Sends a call unless the breaker is open, counts its outcome, and frees its slot in either case. */
  async #counted<T>(shard: Shard, tag: AccountTag, call: () => Promise<T>, ended: (shard: Shard) => void): Promise<T> {
    const { clock } = this.#parts;
    let failed = false;
    let refused = false;
    let tookMs: (() => number) | undefined;
    try {
      if (shard.breaker.isOpen) throw unsent("the store does not answer in time");
      tookMs = stopwatch(clock);
      const answer = await call();
      shard.lastTag = tag;
      return answer;
    } catch (error) {
      failed = isOutage(error);
      refused = isOfItsOwn(error);
      throw error;
    } finally {
      ended(shard);
      // A half-moved slot takes as long as ioredis pauses between its redirections, however fast this server is.
      if (tookMs) shard.breaker.count(failed, refused ? 0 : tookMs());
    }
  }
}

function requestEnded(shard: Shard): void {
  shard.waiting--;
}

function awaitedEnded(shard: Shard): void {
  shard.awaited--;
}

/** Gives the slot to the next in the queue, or frees it. */
function settlementEnded(shard: Shard): void {
  const next = shard.queue.shift();
  if (next) next();
  else shard.settling--;
}

/**
 * An admission for a key that does not exist. It is refused without a trace, but by a script that writes. A store that
 * answers and cannot write (out of memory, no disk, no replicas) therefore does not pass as working.
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
 * Starts to time a server. @returns a function that gives the elapsed milliseconds, without the delay of this process
 * itself. A gateway short of CPU would otherwise blame the store, and refuse all that it could still serve.
 */
function stopwatch(clock: Clock): () => number {
  const startedMs = clock.monotonicMs();
  const ownMs = ownDelayMs(clock);
  return () => clock.monotonicMs() - startedMs - (ownDelayMs(clock) - ownMs);
}

function isOutage(error: unknown): boolean {
  return error instanceof StoreError && error.kind === "unavailable" && error.outcome === "unknown";
}

/** The store has answered, and refuses this account alone: its records are broken, or its slot is being moved. */
function isOfItsOwn(error: unknown): boolean {
  return error instanceof StoreError && error.outcome === "refused";
}

function unsent(message: string): StoreError {
  return new StoreError("unavailable", message, { outcome: "unsent" });
}

/** @returns a promise that ends as `work` does, or after `limitMs` rejects as an unavailable store does. */
export async function inTime(clock: Clock, limitMs: number, work: Promise<void>): Promise<void> {
  let cancel = () => {};
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(limitMs, () => reject(unsent("the account's last charge has not reached the store yet")));
  });
  try {
    await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

/*
 * A circuit breaker for one server of the store. Closed: calls go through and their outcomes are counted. It opens
 * after too many failures or slow answers. Open: calls are refused at once, and a probe is sent after a pause that
 * grows with jitter. The probe's answer closes the breaker, so requests never test whether the store is back
 * (docs/failure-model.md invariant 28, rows B3 and B4).
 */

/**
 * This many failures in a row open it. Each took up to half a second, so more requests than these are waiting by then.
 */
const FAILURES_IN_A_ROW = 5;
/** An answer this slow came at the second try: Redis gets 400 ms for the first. */
const SLOW_MS = 400;
/** This share of failed or slow calls among the last WINDOW opens it, for a store that fails every other time. */
const BAD_SHARE = 0.5;
const WINDOW = 20;
/** Calls further apart than this are not counted together. */
const QUIET_MS = 10_000;
const PAUSE_FIRST_MS = 250;
const PAUSE_MAX_MS = 2_000;

interface BreakerParts {
  readonly clock: Clock;
  /** Between 0 and 1, so that gateways do not return in step. */
  readonly random: () => number;
  /** Asks the store something that it can answer only if it works. */
  readonly probe: () => Promise<unknown>;
  /** Called when it opens and when it closes. */
  readonly onChange: (open: boolean) => void;
}

export class Breaker {
  readonly #parts: BreakerParts;
  /** Outcomes of the last calls, oldest overwritten first; true is bad. */
  readonly #window: boolean[] = [];
  /** The number of bad ones among them. */
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
   * Counts a call that has ended. A call that was sent before the breaker opened does not count afterwards.
   * @param tookMs the time that the store took, without the delay of this process itself; 0 if that is not known.
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

  /** One call at a time tests whether the store is back. A slow answer does not count as back. */
  async #halfOpen(): Promise<void> {
    const { clock, probe, onChange } = this.#parts;
    const tookMs = stopwatch(clock);
    const isBack = await probe().then(
      () => tookMs() < SLOW_MS,
      // The records of this account may be broken; the server itself works.
      isOfItsOwn,
    );
    if (!isBack) return this.#probeLater();
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
