/** Shared by the tests of the journal: settlements, clocks, a store that can lose its newest data, a journal on a SimDisk. */
import { createJournal, type OpenedJournal } from "../../../src/settle/journal/open.ts";
import { StoreError } from "../../../src/store/contract.ts";
import { SETTLED_IDS_MAX, type SettleAnswer, type SettleAsk } from "../../../src/store/settlement.ts";
import type { AccountTag } from "../../../src/values/key.ts";
import { nanoUsd } from "../../../src/values/money.ts";
import type { RequestId } from "../../../src/values/request-id.ts";
import type { Clock } from "../../../src/values/time.ts";
import type { SimDisk } from "./sim-disk.ts";

/** Sixteen segments of 8 KiB: a dozen requests fill one. */
export const SMALL_BYTES_MAX = 16 * 8_192;

export function idOf(number: number): RequestId {
  return number.toString(16).padStart(32, "0") as RequestId;
}

export function askOf(number: number, amount = 100 + number): SettleAsk {
  return {
    requestId: idOf(number),
    tag: `TAG${String(number % 3).padStart(7, "0")}` as AccountTag,
    admittedAtMs: 1_000_000,
    group: "money",
    kind: "pay_per_use",
    entitlement: undefined,
    keyId: "key_1",
    perKey: false,
    model: "chat-1",
    amount: nanoUsd(BigInt(amount)),
    absorbed: nanoUsd(0n),
    absorbedCause: undefined,
    upstream: "up-chat",
    tokensTaken: 10,
    tokensUsed: 20,
    tokensPerMinute: undefined,
    voided: false,
    memo: JSON.stringify({ input: 3, counted: "upstream", text: "ä\n\u0001" }),
  };
}

/** The settlement that voids the hold of a request. */
export function voidOf(number: number): SettleAsk {
  return { ...askOf(number, 0), voided: true, upstream: undefined, tokensUsed: 0, memo: "{}" };
}

/** A clock that stands still until the test moves it; `settle` lets everything that is ready run first. */
export class ManualClock implements Clock {
  nowMs = 10_000_000;
  /** By how much the wall clock is ahead of the monotonic one; a test changes it to make the wall clock jump. */
  wallAheadMs = 0;
  readonly #timers = new Set<{ atMs: number; task: () => void }>();

  monotonicMs(): number {
    return this.nowMs;
  }

  wallMs(): number {
    return this.nowMs + this.wallAheadMs;
  }

  after(ms: number, task: () => void): () => void {
    const timer = { atMs: this.nowMs + ms, task };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  async advance(ms: number): Promise<void> {
    await turns();
    this.nowMs += ms;
    for (const timer of [...this.#timers].sort((left, right) => left.atMs - right.atMs)) {
      if (timer.atMs <= this.nowMs && this.#timers.delete(timer)) timer.task();
    }
    await turns();
  }
}

/** A clock that advances as soon as something waits for it. */
export class HurriedClock implements Clock {
  #nowMs = 10_000_000;
  #stopped = false;

  monotonicMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#nowMs;
  }

  after(ms: number, task: () => void): () => void {
    const timer = setImmediate(() => {
      this.#nowMs += ms;
      if (!this.#stopped) task();
    });
    return () => clearImmediate(timer);
  }

  /** Simulates the death of the process: nothing runs any more. */
  stop(): void {
    this.#stopped = true;
  }
}

/** Lets promises that are ready run; the simulated disk needs no more than this. */
export async function turns(count = 50): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

export interface Opened extends OpenedJournal {
  readonly alarms: string[];
}

export async function openOn(
  disk: SimDisk,
  clock: Clock,
  options: { fsync?: "group" | "always"; bytesMax?: number } = {},
): Promise<Opened> {
  const alarms: string[] = [];
  const { fsync = "group", bytesMax = SMALL_BYTES_MAX } = options;
  const opened = await createJournal({ disk, clock, fsync, bytesMax, alarm: (message) => void alarms.push(message) });
  return { ...opened, alarms };
}

/** A store that only knows what was settled, can be unreachable, and can lose data. */
export class ForgetfulStore {
  readonly settled = new Map<string, SettleAsk>();
  away = false;
  /** Request ids of all settlements in the order of their arrival. */
  readonly asks: string[] = [];
  readonly missing = new Set<string>();
  /** Accounts that are broken: lookups and settlements fail. */
  readonly broken = new Set<string>();

  /** The request ids that were looked up. */
  readonly looked: string[] = [];

  async settledAmounts(tag: string, ids: readonly string[]) {
    if (ids.length > SETTLED_IDS_MAX) throw new RangeError("more ids in one lookup than allowed");
    this.looked.push(...ids);
    this.#demandWhole(tag);
    return ids.map((id) => this.settled.get(id)?.amount);
  }

  async settle(ask: SettleAsk): Promise<SettleAnswer> {
    this.asks.push(ask.requestId);
    this.#demandWhole(ask.tag);
    if (this.missing.has(ask.tag)) return { outcome: "unknown_account" };
    const before = this.settled.get(ask.requestId);
    if (before && before.amount !== ask.amount) return { outcome: "mismatch", recorded: before.amount };
    if (before) return { outcome: "duplicate" };
    this.settled.set(ask.requestId, ask);
    return { outcome: "settled", charged: ask.amount, absorbed: nanoUsd(0n), balance: nanoUsd(0n) };
  }

  #demandWhole(tag: string): void {
    if (this.away) throw new StoreError("unavailable", "away");
    if (this.broken.has(tag)) throw new StoreError("unavailable", "WRONGTYPE", { outcome: "refused" });
  }
}

/** A small generator (mulberry32): the same seed gives the same numbers. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
