/**
 * A store that may be away or slow without holding requests back. In front of each of its servers stands a breaker; the
 * calls that wait for a server have a maximum, admissions to be refused and settlements to stand in line. What is refused
 * here was never sent, so nobody has to take it back (docs/failure-model.md invariant 28, rows B3, B4 and B7).
 */

import type { Log } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import type { AccountTag, KeyHash } from "../../values/key.ts";
import type { RequestId } from "../../values/request-id.ts";
import type { Clock } from "../../values/time.ts";
import type { AdmitAsk } from "../admission.ts";
import { type Store, StoreError } from "../contract.ts";
import type { ExtendAsk } from "../extension.ts";
import { overlay } from "../overlay.ts";
import type { SettleAsk } from "../settlement.ts";
import { Breaker } from "./breaker.ts";

/** Requests that wait for one server: at 200 ms an answer, 2,500 a second still pass. */
const WAITING_MAX = 512;
/** Settlements under way to one server; what gathered in an outage goes out no faster. */
const SETTLEMENTS_MAX = 64;
/** Servers that are counted apart: as many as a Redis Cluster can have. Further ones share a breaker. */
const SHARDS_MAX = 1_000;
/** Not ready after this long (invariant 28). */
const UNREADY_AFTER_MS = 5_000;

export interface GuardParts {
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: Metrics;
  readonly log: Log;
}

export interface GuardedStore {
  readonly store: Store;
  /** Why the gateway is not ready: the breakers of all servers have been open for long. Empty while one is closed. */
  reasons(): string[];
  stop(): void;
}

interface Shard {
  readonly breaker: Breaker;
  waiting: number;
  settling: number;
  /** Settlements in line, oldest first. */
  readonly line: (() => void)[];
  /** The account whose call was counted last: a probe for it reaches the same server. */
  lastTag: AccountTag;
}

export function guardStore(store: Store, parts: GuardParts): GuardedStore {
  const { clock, random, metrics, log } = parts;
  const shards = new Map<string, Shard>();
  metrics.storeBreakerOpen.set(0);

  function shardFor(tag: AccountTag): Shard {
    const name = store.shardOf(tag);
    const known = shards.get(name) ?? (shards.size < SHARDS_MAX ? undefined : [...shards.values()][0]);
    if (known) return known;
    const breaker = new Breaker({
      clock,
      random,
      probe: () => store.admit(probeOf(made.lastTag)),
      onChange: (open) => changed(name, open),
    });
    const made: Shard = { breaker, waiting: 0, settling: 0, line: [], lastTag: tag };
    shards.set(name, made);
    return made;
  }

  function changed(server: string, open: boolean): void {
    const anyOpen = [...shards.values()].some(({ breaker }) => breaker.isOpen);
    metrics.storeBreakerOpen.set(anyOpen ? 1 : 0);
    if (open) log.warn({ server }, "the store does not answer in time; new requests are refused until it does");
    else log.info({ server }, "the store answers in time again");
  }

  /** Sends a call unless the breaker is open, and counts what became of it. */
  async function counted<T>(shard: Shard, tag: AccountTag, call: () => Promise<T>): Promise<T> {
    if (shard.breaker.isOpen) throw unsent("the store does not answer in time");
    shard.lastTag = tag;
    const startedMs = clock.monotonicMs();
    let failed = false;
    try {
      return await call();
    } catch (error) {
      failed = isOutage(error);
      throw error;
    } finally {
      shard.breaker.count(failed, clock.monotonicMs() - startedMs);
    }
  }

  async function ofRequest<T>(tag: AccountTag, call: () => Promise<T>): Promise<T> {
    const shard = shardFor(tag);
    if (shard.waiting >= WAITING_MAX) throw unsent("too many requests wait for the store");
    shard.waiting++;
    try {
      return await counted(shard, tag, call);
    } finally {
      shard.waiting--;
    }
  }

  async function settlement<T>(tag: AccountTag, call: () => Promise<T>): Promise<T> {
    const shard = shardFor(tag);
    if (shard.settling >= SETTLEMENTS_MAX) await new Promise<void>((resolve) => shard.line.push(resolve));
    else shard.settling++;
    try {
      return await counted(shard, tag, call);
    } finally {
      // The place goes to the next in line, or is free.
      const next = shard.line.shift();
      if (next) next();
      else shard.settling--;
    }
  }

  return {
    store: overlay(store, {
      admit: (ask: AdmitAsk) => ofRequest(ask.tag, () => store.admit(ask)),
      readKey: (tag: AccountTag, hash: KeyHash) => ofRequest(tag, () => store.readKey(tag, hash)),
      extend: (ask: ExtendAsk) => ofRequest(ask.tag, () => store.extend(ask)),
      settle: (ask: SettleAsk) => settlement(ask.tag, () => store.settle(ask)),
    }),
    reasons() {
      const all = [...shards.values()];
      const away = all.length > 0 && all.every(({ breaker }) => breaker.openMs >= UNREADY_AFTER_MS);
      return away ? ["the store does not answer in time: its breaker is open"] : [];
    },
    stop() {
      for (const { breaker } of shards.values()) breaker.stop();
    },
  };
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
    plans: [],
    groups: [],
    inputTokens: 0,
    holdTtlMs: 1,
    again: false,
  };
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
