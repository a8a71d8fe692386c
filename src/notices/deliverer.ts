/**
 * Delivers notices to their receiver. The notices of an account go out in order: the next one when the one before was
 * accepted or given up. Of the gateways that share a store, one delivers at a time. If it dies, another continues from
 * the store and resends what was in flight under the same id.
 */

import { type Store, StoreUnreachableError } from "../store/contract.ts";
import { accountId } from "../store/names.ts";
import { GATEWAY_OUTBOX, NOTICES_PAGE_MAX, type Notice, type Outbox, type WaitingNotices } from "../store/notices.ts";
import { type Log, withoutRepeats } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { errorText } from "../values/program/error-text.ts";
import { COMMAND } from "../values/program/program.ts";
import type { NoticeSettings } from "../values/settings.ts";
import type { Clock } from "../values/time.ts";
import { messageOf } from "./message.ts";
import { type Sent, send } from "./send.ts";

/** The lease's length on the store's clock: how long a gateway that has died keeps the others from delivering. */
const LEASE_MS = 6_000;
const RENEW_EVERY_MS = 2_000;
/** The holder stops relying on its lease this long before the end. */
const LEASE_MARGIN_MS = 1_000;
/** How often all accounts are scanned, if they fit on one page and if they do not; and the pause between two pages. */
const PAGE_EVERY_MS = 3_000;
const SWEEP_EVERY_MS = 10_000;
const PAGE_PAUSE_MS = 250;
/** Accounts served at the same time, and notices sent for one account before it is the next account's turn. */
const AT_ONCE = 8;
const IN_A_ROW = 16;
/** Maximum of accounts known to have notices waiting; further ones are found when some of these have no more. */
const LANES_MAX = 10_000;
/** Backoff after the first, second, ... failure; the last value repeats. */
const BACKOFF_MS = [5_000, 30_000, 120_000, 600_000, 3_600_000, 3 * 3_600_000] as const;
const JITTER = 0.2;
/**
 * With this many failures since the last success, the receiver itself failed and not just one notice. Once it accepts a
 * notice again, all others are retried within `HURRY_WITHIN_MS` instead of hours later.
 */
const OUTAGE_FAILURES = 3;
const HURRY_WITHIN_MS = 30_000;
/**
 * At most this often, so that a receiver that accepts a notice only now and then is not flooded: backoff continues to
 * grow.
 */
const HURRY_EVERY_MS = 1_800_000;
/** A notice that is older than this when it fails is given up. */
const GIVE_UP_AFTER_MS = 3 * 86_400_000;
/** Pause before a store that failed is asked again. */
const STORE_PAUSE_MS = 2_000;

type NoticeStore = Pick<Store, "readNotices" | "takeNotice" | "pageNotices" | "leaseNotices">;

/** Notices that this process keeps in memory, because the store must not be touched. */
export interface DirectQueue {
  read(): WaitingNotices;
  take(seq: number): void;
}

interface DelivererParts {
  readonly store: NoticeStore;
  readonly settings: () => NoticeSettings | undefined;
  readonly direct: DirectQueue;
  /** This process's name as holder of the lease. */
  readonly holder: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly metrics: Pick<
    Metrics,
    "noticesDelivered" | "noticeFailures" | "noticesLost" | "noticesOldest" | "noticesStopped"
  >;
  readonly log: Log;
  readonly fetch: typeof fetch;
}

const DIRECT = "direct";
type LaneName = Outbox | typeof DIRECT;

/** Delivery state of one account. */
interface Lane {
  dueMs: number;
  /** Until when the receiver has asked to wait (Retry-After). */
  askedUntilMs: number;
  failures: number;
  running: boolean;
  /** A notice arrived while it ran. */
  again: boolean;
  headAtMs: number | undefined;
  reason: string | undefined;
}

/** What this process knows of an account's delivery. */
export interface LaneState {
  readonly failures: number;
  readonly nextInMs: number;
  readonly reason: string | undefined;
}

export class Deliverer {
  readonly #parts: DelivererParts;
  readonly #lanes = new Map<LaneName, Lane>();
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #storeWaits: (reason: string) => void;
  readonly #failing: (reason: string) => void;
  readonly #cancels = new Map<"renew" | "sweep" | "pump", () => void>();
  /** Until when this process holds the lease, on its own clock. */
  #leasedUntilMs = Number.NEGATIVE_INFINITY;
  #sweeping = false;
  #endPause = () => {};
  /** Why sending has stopped; undefined while it has not. */
  #stopped: string | undefined;
  /** Failures since the receiver last accepted a notice. */
  #failuresInARow = 0;
  #hurriedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: DelivererParts) {
    this.#parts = parts;
    const { clock, log } = parts;
    this.#storeWaits = withoutRepeats(clock, (reason) => log.warn({ reason }, "notices wait for the store"));
    this.#failing = withoutRepeats(clock, (reason) =>
      log.warn({ event: "notice_failed", reason }, "the receiver did not accept a notice; it is retried"),
    );
  }

  start(): void {
    void this.#track(this.#renew());
  }

  /** Resolves when nothing is in flight. Waiting notices stay in the store. */
  async stop(): Promise<void> {
    this.#closing.abort();
    this.#endPause();
    for (const cancel of this.#cancels.values()) cancel();
    await Promise.all(this.#running);
    if (!this.isLeader) return;
    // Releases the lease, so that another process need not wait for its end.
    const { store, holder } = this.#parts;
    await store.leaseNotices({ holder, ms: 1, force: false }).catch(() => undefined);
  }

  /** Whether this process delivers. */
  get isLeader(): boolean {
    return this.#parts.clock.monotonicMs() < this.#leasedUntilMs;
  }

  /** Why sending has stopped; undefined while it has not. */
  get stopped(): string | undefined {
    return this.#stopped;
  }

  state(name: LaneName): LaneState | undefined {
    const lane = this.#lanes.get(name);
    if (!lane) return undefined;
    const nextInMs = Math.max(0, lane.dueMs - this.#parts.clock.monotonicMs());
    return { failures: lane.failures, nextInMs, reason: lane.reason };
  }

  /** Reports that a notice waits there. It is handled later in this turn of the event loop at the earliest. */
  wake(name: LaneName): void {
    if (this.#closing.signal.aborted || this.#parts.settings() === undefined) return;
    const known = this.#lanes.get(name);
    if (known) known.again = true;
    else if (this.#lanes.size < LANES_MAX) {
      const dueMs = this.#parts.clock.monotonicMs();
      this.#lanes.set(name, {
        dueMs,
        askedUntilMs: dueMs,
        failures: 0,
        running: false,
        again: false,
        headAtMs: undefined,
        reason: undefined,
      });
    } else return;
    this.#pumpIn(0);
  }

  /** Makes everything due now: the receiver has changed, or is to be retried. */
  reset(): void {
    this.#stopped = undefined;
    this.#parts.metrics.noticesStopped.set(0);
    const nowMs = this.#parts.clock.monotonicMs();
    for (const lane of this.#lanes.values()) lane.dueMs = nowMs;
    // While there was no receiver, this process dropped the lane of the notices in its own memory.
    this.wake(DIRECT);
    this.#pumpIn(0);
  }

  /** Takes the lease for this process and does the same. Rejects with StoreError. */
  async retry(): Promise<void> {
    await this.#lease(true);
    this.reset();
    void this.#track(this.#sweep());
  }

  measure(): void {
    const ages = [...this.#lanes.values()].map(({ headAtMs }) => headAtMs).filter((atMs) => atMs !== undefined);
    const oldest = ages.length === 0 ? undefined : Math.min(...ages);
    this.#parts.metrics.noticesOldest.set(
      oldest === undefined ? 0 : Math.max(0, this.#parts.clock.wallMs() - oldest) / 1_000,
    );
  }

  #track(work: Promise<void>): Promise<void> {
    const tracked = work.catch((error: unknown) =>
      this.#parts.log.error({ reason: String(error) }, "a defect in the delivery of notices"),
    );
    this.#running.add(tracked);
    return tracked.finally(() => this.#running.delete(tracked));
  }

  #after(name: "renew" | "sweep" | "pump", ms: number, work: () => void): void {
    this.#cancels.get(name)?.();
    if (!this.#closing.signal.aborted) this.#cancels.set(name, this.#parts.clock.after(ms, work));
  }

  async #renew(): Promise<void> {
    const was = this.isLeader;
    try {
      // Without a receiver no process needs the lease.
      if (this.#parts.settings() !== undefined) await this.#lease(false);
      // Other processes may have written notices that belong to no account.
      if (this.isLeader) this.wake(GATEWAY_OUTBOX);
      if (!was && this.isLeader) void this.#track(this.#sweep());
    } catch (error) {
      this.#waits(error);
    }
    this.#after("renew", RENEW_EVERY_MS, () => void this.#track(this.#renew()));
  }

  async #lease(force: boolean): Promise<void> {
    const { store, holder, clock } = this.#parts;
    const askedMs = clock.monotonicMs();
    const isOurs = await store.leaseNotices({ holder, ms: LEASE_MS, force });
    this.#leasedUntilMs = isOurs ? askedMs + LEASE_MS - LEASE_MARGIN_MS : Number.NEGATIVE_INFINITY;
    if (isOurs) return;
    for (const [name, lane] of this.#lanes) if (name !== DIRECT && !lane.running) this.#lanes.delete(name);
  }

  /** Finds older notices, and those that other processes wrote, page by page. */
  async #sweep(): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    let pages = 0;
    try {
      let cursor: string | undefined;
      do {
        if (!this.isLeader) return;
        const page = await this.#parts.store.pageNotices(cursor, NOTICES_PAGE_MAX);
        for (const { tag } of page.items) this.wake(tag);
        cursor = page.next;
        pages += 1;
        if (cursor !== undefined) await this.#pause(PAGE_PAUSE_MS);
      } while (cursor !== undefined && !this.#closing.signal.aborted);
    } catch (error) {
      this.#waits(error);
    } finally {
      this.#sweeping = false;
      this.#sweepIn(pages === 1 ? PAGE_EVERY_MS : SWEEP_EVERY_MS);
    }
  }

  #sweepIn(ms: number): void {
    this.#after("sweep", ms, () => {
      if (this.isLeader) void this.#track(this.#sweep());
      else this.#sweepIn(SWEEP_EVERY_MS);
    });
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.#closing.signal.aborted) return resolve();
      const cancel = this.#parts.clock.after(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }

  #pumpIn(ms: number): void {
    this.#after("pump", ms, () => this.#pump());
  }

  #pump(): void {
    if (this.#closing.signal.aborted || this.#stopped !== undefined) return;
    const nowMs = this.#parts.clock.monotonicMs();
    let free = AT_ONCE;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const { running } of this.#lanes.values()) if (running) free -= 1;
    for (const [name, lane] of this.#lanes) {
      if (free <= 0) return;
      if (lane.running) continue;
      if (lane.dueMs > nowMs) nextMs = Math.min(nextMs, lane.dueMs);
      else {
        free -= 1;
        lane.running = true;
        void this.#track(this.#run(name, lane)).then(() => this.#pump());
      }
    }
    if (nextMs !== Number.POSITIVE_INFINITY) this.#pumpIn(nextMs - nowMs);
  }

  async #run(name: LaneName, lane: Lane): Promise<void> {
    lane.again = false;
    try {
      for (let sent = 0; sent < IN_A_ROW; sent++) {
        if (!(await this.#step(name, lane))) return;
      }
      // To the end of the queue: the other accounts' turn.
      this.#lanes.delete(name);
      this.#lanes.set(name, lane);
    } catch (error) {
      lane.dueMs = this.#parts.clock.monotonicMs() + STORE_PAUSE_MS;
      this.#waits(error);
    } finally {
      lane.running = false;
    }
  }

  /** @returns whether there may be more to send at once. */
  async #step(name: LaneName, lane: Lane): Promise<boolean> {
    const { store, direct } = this.#parts;
    const settings = this.#parts.settings();
    const mayGo = name === DIRECT || this.isLeader;
    if (!settings || !mayGo || this.#closing.signal.aborted || this.#stopped !== undefined) {
      if (!settings || !mayGo) this.#lanes.delete(name);
      return false;
    }
    const waiting = name === DIRECT ? direct.read() : await store.readNotices(name, 1);
    const [head] = waiting.notices;
    if (!head) {
      lane.headAtMs = undefined;
      if (lane.again) lane.again = false;
      else this.#lanes.delete(name);
      return this.#lanes.has(name);
    }
    lane.headAtMs = head.atMs;
    const outbox = name === DIRECT ? GATEWAY_OUTBOX : name;
    const dropped = head.seq - waiting.taken - 1;
    const message = messageOf({ ...head, outbox, name: waiting.name, dropped });
    const { clock, fetch: fetcher } = this.#parts;
    const sent = await send(message, settings, { clock, fetch: fetcher, signal: this.#closing.signal });
    if (this.#closing.signal.aborted && sent.outcome !== "taken") return false;
    const takesIt = this.#judge(name, lane, head, sent);
    if (!takesIt) return false;
    if (dropped > 0) this.#parts.metrics.noticesLost.inc({ cause: "dropped" }, dropped);
    if (name === DIRECT) direct.take(head.seq);
    else await store.takeNotice(name, head.seq);
    return true;
  }

  /** @returns whether the notice leaves the queue. */
  #judge(name: LaneName, lane: Lane, head: Notice, sent: Sent): boolean {
    const { clock, log, metrics } = this.#parts;
    const { kind } = head;
    if (sent.outcome === "taken") {
      metrics.noticesDelivered.inc({ kind });
      lane.failures = 0;
      lane.reason = undefined;
      if (this.#failuresInARow >= OUTAGE_FAILURES) this.#hurry();
      this.#failuresInARow = 0;
      return true;
    }
    this.#failuresInARow += 1;
    lane.failures += 1;
    lane.reason = sent.reason;
    if (sent.outcome === "gone") {
      metrics.noticeFailures.inc({ cause: "answer" });
      this.#stopped = sent.reason;
      metrics.noticesStopped.set(1);
      log.error(
        { event: "notices_stopped", reason: sent.reason },
        `the receiver wants no more notices: none is sent until its settings change or you run: ${COMMAND} webhook retry`,
      );
      return false;
    }
    metrics.noticeFailures.inc({ cause: sent.cause ?? "answer" });
    this.#failing(sent.reason);
    if (clock.wallMs() - head.atMs > GIVE_UP_AFTER_MS) {
      metrics.noticesLost.inc({ cause: "given_up" });
      const account = name === GATEWAY_OUTBOX || name === DIRECT ? undefined : accountId(name);
      log.error({ event: "notice_given_up", account, kind, reason: sent.reason }, "a notice is given up after 3 days");
      lane.failures = 0;
      return true;
    }
    const backoffMs = BACKOFF_MS[Math.min(lane.failures, BACKOFF_MS.length) - 1] as number;
    const jittered = backoffMs * (1 + JITTER * (2 * this.#parts.random() - 1));
    const nowMs = clock.monotonicMs();
    lane.askedUntilMs = nowMs + sent.retryAfterMs;
    lane.dueMs = Math.max(nowMs + jittered, lane.askedUntilMs);
    return false;
  }

  /** After an outage of the receiver: what waits for its next attempt is retried soon, spread over a short time. */
  #hurry(): void {
    const { clock, random } = this.#parts;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#hurriedAtMs < HURRY_EVERY_MS) return;
    this.#hurriedAtMs = nowMs;
    for (const lane of this.#lanes.values()) {
      const soonMs = Math.max(nowMs + random() * HURRY_WITHIN_MS, lane.askedUntilMs);
      if (lane.failures > 0) lane.dueMs = Math.min(lane.dueMs, soonMs);
    }
  }

  #waits(error: unknown): void {
    if (!(error instanceof StoreUnreachableError)) this.#storeWaits(errorText(error));
  }
}
